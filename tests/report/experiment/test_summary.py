"""The comparison of methods in words: what is better than what, by how much, and what would have shown."""

import dataclasses
import json

import pandas as pd
import pytest
from pages import metric_rows

from pairflow.report.experiment.quality import evaluation_blocks
from pairflow.report.experiment.sheets import list_sheets
from pairflow.report.experiment.summary import write_summary
from pairflow.report.headline import make_headline

pytestmark = pytest.mark.usefixtures("empty_charts")
BOTH = {"udlm": (84.0, 245.0, 437.0), "pairflow": (352.0, 498.0, 662.0)}
JUDGED = "In this training, judged by the number of valid molecules, "
OURS, BASELINE = "pairflow (sources paired with the data)", "udlm (random sources)"


def noisy(rows: pd.DataFrame, scale: float = 1.0) -> pd.DataFrame:
    """Rows with 0.5, -1, 0.5 more in PairFlow's trials: differences have a standard error of 0.5."""
    noise = scale * rows.trial.map({0: 0.5, 1: -1.0, 2: 0.5}).astype("float64")
    return rows.assign(value=rows.value + noise.where(rows.method == "pairflow", 0.0))


def test_sentences_hold_the_numbers(make):
    """t(0.975, 2) = 4.303 standard errors are 2.15."""
    relative, quality, distance, cost = write_summary(make(metrics=noisy(make().metrics)))
    better = f"{OURS} is better than {BASELINE} at 1, 4 and 32 sampling steps, "
    assert relative.startswith(f"{JUDGED}{better}")
    assert relative.endswith("by 225.0 to 268.0 (95 % intervals of the differences: +222.8 to +270.2).")
    assert "352.0 ± 1.3 with pairflow, 183.0 ± 1.0 with random and 84.0 ± 1.0 with udlm (1,024 " in quality
    assert "9.00 of 16 tokens" in distance
    assert "12 s, 25.0 % of the time" in cost


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ((35, 49, 66), f"{OURS} is worse than {BASELINE} at 1, 4 and 32 sampling steps, by 49.0 to 371.0 ("),
        ((352, 498, 66), "by 371.0 (95 % intervals of the differences: −373.2 to −368.8)."),
        ((352, 245, 66), "nothing is decided at 4 sampling steps, where the tests would have found a "),
        (
            (84, 245, 437),
            f"no difference between {OURS} and {BASELINE} is decided in 3 comparisons; the tests would have "
            "found a difference of about 3.8.",
        ),
    ],
    ids=["worse", "mixed", "mixed with a tie", "ties"],
)
def test_the_first_sentence_says_who_is_better(make, ours, said):
    first = write_summary(make(metrics=noisy(metric_rows(BOTH | {"pairflow": ours}))))[0]
    assert first.startswith(JUDGED)
    assert said in first


def test_sentences_of_absent_methods_are_left_out(make):
    timings = make().timings.iloc[:0]
    rows = metric_rows({"udlm": (84, 245, 437)})
    only = make(settings={"methods": ["udlm"]}, metrics=rows, couplings={}, timings=timings)
    [quality] = write_summary(only)
    assert "pairflow" not in quality
    assert write_summary(dataclasses.replace(only, metrics=only.metrics.iloc[:0])) == []


@pytest.mark.parametrize(("distance", "independent"), [(15, False), (16, True)])
def test_a_coupling_that_is_no_nearer_than_random_sources_is_said_to_be_independent(
    make, distance, independent
):
    """Independent sources differ from a row of 16 tokens of 1,000 symbols at 15.98 of them."""
    own = make().couplings["pairflow"] | {f"hamming_share_{d}": float(d == distance) for d in range(17)}
    contents = make(
        data=make().data | {"vocabulary_size": 1000},
        couplings={"pairflow": own | {"hamming_mean": float(distance)}, "random": make().couplings["random"]},
    )
    assert contents.independent == ["pairflow"] * independent
    summary = next(text for text in write_summary(contents) if "coupling a source differs" in text)
    assert ("nearly independent" in summary) is independent


def test_several_seeds_are_what_is_tested(make):
    rows = metric_rows(BOTH, seeds=(0, 1, 2))
    rows["value"] += 5 * rows.seed + ((rows.method == "udlm") & (rows.seed == 2) & (rows.nfe == 4))
    relative, quality, *_ = write_summary(make(metrics=rows))
    assert relative.startswith("Judged by ")  # not "In this training"
    assert "is better than udlm (random sources) at 4 sampling steps" in relative
    assert "357.0 ± 5.0 with pairflow" in quality
    # UDLM at one step with seed 0 only: its trials are no trainings.
    one = rows[(rows.method != "udlm") | (rows.nfe != 1) | (rows.seed == 0)]
    assert " and 84.0 with udlm (" in write_summary(make(metrics=one))[1]


def test_numbers_of_steps_are_whole_where_rows_without_any_have_made_them_floats(make):
    text = " ".join(write_summary(make(metrics=make().metrics.astype({"nfe": "float64"}))))
    assert "at 1 sampling step:" in text


@pytest.mark.parametrize(
    ("scale", "would"),
    [
        (6, "the tests would have found a difference of about 18.6 in 1 of them"),
        (12, "the tests could not have found any gain"),
    ],
)
def test_a_gain_that_is_impossible_is_not_said_to_show(make_images, scale, would):
    """FD of UDLM is 84, 30, 17.5. Standard errors of 3 times t(1 - 0.05 / 4, 2) = 6.205 are 18.6."""
    rows = pd.concat([make_images().metrics.assign(trial=trial) for trial in range(3)], ignore_index=True)
    first = write_summary(make_images(metrics=noisy(rows, scale)))[0]
    assert "better than udlm (random sources) at 1 sampling step, by 70.0 (" in first
    assert first.endswith(f"nothing is decided at 4 and 32 sampling steps, where {would}.")


def test_nan_is_not_a_number_of_molecules(make):
    metrics = make().metrics
    udlm = metrics.method == "udlm"
    text = " ".join(write_summary(make(metrics=metrics.assign(value=metrics.value.mask(udlm)))))
    assert "nan" not in text
    assert "udlm" not in text
    some = noisy(metrics.assign(value=metrics.value.mask(udlm & (metrics.nfe == 4))))
    assert "(random sources) at 1 and 32" in write_summary(make(metrics=some))[0]


def test_masks_and_uniform_noise_are_compared_at_equal_calls(make):
    """Two calls are NFE 2 of mdlm and NFE 1 of pairflow, three are NFE 3 and NFE 2."""
    rows = noisy(metric_rows({"mdlm": (10, 200, 400), "udlm": (1, 2, 3), "pairflow": (300, 350, 500)}))
    rows["nfe"] = rows.nfe.map({1: 1, 4: 2, 32: 3})
    main = {"main": {"nfe": (1, 2, 3), "trials": 3}}
    contents = make(settings={"methods": ["mdlm", "udlm", "pairflow"], "evaluations": main}, metrics=rows)
    of_udlm, of_mdlm, *_ = write_summary(contents)
    assert "at 1, 2 and 3 sampling steps, by 299.0 to 497.0" in of_udlm
    assert "better than mdlm (masks) at 2 network calls" in of_mdlm
    assert "worse at 3 network calls, by 50.0 (" in of_mdlm
    [block] = evaluation_blocks(contents)
    assert block.tables[0].call_rows == {"mdlm": (1, 2, 3), "udlm and pairflow": (2, 3, 4)}
    methods = ["udlm", "random", "ot", "a", "b", "c", "d"]
    frame = pd.concat([rows.assign(method=method) for method in methods])
    calls = {method: [1] if method in "abcd" else [2] for method in methods}
    many = dataclasses.replace(block.tables[0], methods=methods, frame=frame, calls=calls)
    assert many.call_rows == {"udlm, random and ot": (2,), "other methods": (1,)}
    lines = {line["name"]: line["points"] for line in json.loads(block.main.charts[0].points)}
    assert [lines[name][0][2][0] for name in ("mdlm", "pairflow")] == ["1 step, 1 call", "1 step, 2 calls"]
    [csv] = [sheet for sheet in list_sheets(contents, None, [block], None, []) if "quality" in sheet.name]
    rows = {(row["method"], row["nfe"], row["calls"]) for row in csv.records}
    assert rows >= {("mdlm", 2, 2), ("pairflow", 2, 3)}


def test_perplexities_at_unequal_entropy_are_no_verdict(make):
    counts = {"udlm": (90.0, 60.0, 30.0), "pairflow": (50.0, 40.0, 20.0)}
    rows = noisy(metric_rows(counts)).query("metric == 'valid'")
    perplexity = rows.assign(metric="judge_ppl", extractor="kneser-ney-6-1a2b3c4d")
    entropy = rows.assign(metric="entropy", value=2.4 - 0.2 * ((rows.method == "udlm") & (rows.nfe == 32)))
    data = {"source": "shakespeare", "tokeniser": "characters", "length": 16}
    contents = make(
        settings={"data": data, "methods": [*counts], "correlation": None},
        metrics=pd.concat([perplexity, entropy], ignore_index=True),
    )
    assert "pairflow and udlm differ in entropy at 32 sampling steps" in write_summary(contents)[0]
    assert " entropies, 2.20 to 2.40 nats, " in make_headline(contents).sentence
