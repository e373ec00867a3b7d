import dataclasses
import json

import pandas as pd
import pytest

from pairflow.report.experiment.page import render
from pairflow.report.experiment.quality import evaluation_blocks
from pairflow.report.experiment.sheets import list_sheets
from pairflow.report.experiment.summary import write_summary
from pairflow.report.headline import make_headline


def noisy(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with 0.5, -1, 0.5 more in PairFlow's trials: differences have a standard error of 0.5."""
    noise = rows.trial.map({0: 0.5, 1: -1.0, 2: 0.5})
    return rows.assign(value=rows.value + noise.where(rows.method == "pairflow", 0.0))


SINGLE = " Each interval is of one difference only; verdicts are corrected (Holm) over"


def test_sentences_hold_the_numbers(make):
    relative, quality, distance, cost = write_summary(make(metrics=noisy(make().metrics)))
    assert quality == (
        "In this training, the number of valid molecules at 1 sampling step: 352.0 ± 1.3 with pairflow, "
        "183.0 ± 1.0 with random and 84.0 ± 1.0 with udlm (mean ± standard deviation between sampling "
        "trials; 1,024 samples × 3 trials × 1 seed)."
    )
    # t(0.975, 2) = 4.303 standard errors are 2.15.
    assert relative == (
        "In this training, pairflow, which learns from sources paired with the data, is better than udlm, "
        "which learns from random ones, at every number of sampling steps (1, 4 and 32). In this training, "
        "the number of valid molecules of pairflow less that of udlm: +268.0 at 1 sampling step (95 % "
        "interval +265.8 to +270.2) and +225.0 at 32 sampling steps (95 % interval +222.8 to +227.2); higher "
        f"is better.{SINGLE} 3 comparisons."
    )
    assert "9.00 of 16 tokens" in distance
    assert "15.47" in distance
    assert "12.0 s, 25.0% of the 48.0 s" in cost


def test_of_many_methods_the_best_three_and_the_baseline_are_named(many, metric_rows):
    assert write_summary(many)[1] == (
        "In this training, the number of valid molecules at 1 sampling step, the best three of 12 methods: "
        "120.0 ± 1.0 with pairflow+redi+redi+redi, 110.0 ± 1.0 with pairflow+redi+redi and 100.0 ± 1.0 with "
        "pairflow+redi; 20.0 ± 1.0 with udlm (mean ± standard deviation between sampling trials; 1,024 "
        "samples × 3 trials × 1 seed; network calls: 1 of mdlm and 2 of other methods)."
    )
    assert (
        "of pairflow less that of udlm: +20.0 at 1 sampling step (not tested: no spread)"
        in (write_summary(many)[0])
    )
    # A baseline among the best is named once.
    counts = {method: (10.0 * n, 1, 1) for n, method in enumerate(reversed(many.methods), 1)}
    quality = write_summary(dataclasses.replace(many, metrics=metric_rows(counts)))[1]
    assert quality.count("udlm") == 1
    assert ";" not in quality.partition("(")[0]


def test_sentences_of_absent_methods_are_left_out(make, metric_rows):
    only = make(
        settings={"methods": ["udlm"]},
        metrics=metric_rows({"udlm": (84, 245, 437)}),
        couplings={},
        timings=make().timings.iloc[:0],
    )
    [quality] = write_summary(only)
    assert "pairflow" not in quality
    nothing = dataclasses.replace(only, metrics=only.metrics.iloc[:0])
    assert write_summary(nothing) == []


@pytest.mark.parametrize(("distance", "independent"), [(15, False), (16, True)])
def test_a_coupling_that_is_no_nearer_than_random_sources_is_said_to_be_independent(
    make, parse, distance, independent
):
    """Independent sources differ from a row of 16 tokens of 1,000 symbols at 15.98 of them."""
    own = make().couplings["pairflow"] | {f"hamming_share_{d}": float(d == distance) for d in range(17)}
    contents = make(
        data=make().data | {"vocabulary_size": 1000},
        couplings={"pairflow": own | {"hamming_mean": float(distance)}, "random": make().couplings["random"]},
    )
    assert contents.independent == ["pairflow"] * independent
    summary = next(text for text in write_summary(contents) if "coupling leaves" in text)
    assert summary.startswith(
        f"The pairflow coupling leaves source and data {distance}.00 of 16 tokens apart"
    )
    assert ("there is less to undo" in summary) is not independent
    assert ("nearly independent of the data, because hardly any weight counts but" in summary) is independent
    said = parse(render(contents)).words()
    assert ("The sources of pairflow are as far from their data as independent ones" in said) is independent


BOTH = {"udlm": (84, 245, 437), "pairflow": (352, 498, 662)}


def test_several_seeds_say_so(make, metric_rows):
    rows = metric_rows(BOTH, seeds=(0, 1, 2))
    rows["value"] += 5 * rows.seed + ((rows.method == "udlm") & (rows.seed == 2) & (rows.nfe == 4))
    relative, quality, *_ = write_summary(make(metrics=rows))
    assert quality == (
        "The number of valid molecules at 1 sampling step: 357.0 ± 5.0 with pairflow and 89.0 ± 5.0 with "
        "udlm (mean ± standard deviation between 3 training seeds; 1,024 samples × 3 trials × 3 seeds)."
    )
    assert relative.startswith(
        "Pairflow, which learns from sources paired with the data, is better than udlm, which learns from "
        "random ones, at 4 sampling steps and not shown"
    )


def test_one_seed_against_several_has_no_deviation_and_no_error(make, metric_rows):
    """UDLM at one step was measured only with seed 0: its trials are no trainings."""
    rows = metric_rows(BOTH, seeds=(0, 1, 2))
    rows = rows[(rows.method != "udlm") | (rows.nfe != 1) | (rows.seed == 0)]
    relative, quality, *_ = write_summary(make(metrics=rows))
    assert "352.0 ± 0.0 with pairflow and 84.0 with udlm (" in quality
    assert "+268.0 at 1 sampling step (not tested: no spread) and +225.0 at 32" in relative


def test_seeds_that_each_measured_another_method_have_no_deviation(make, metric_rows):
    rows = metric_rows(BOTH, seeds=(0, 1))
    rows = rows[(rows.method == "udlm") == (rows.seed == 0)]
    assert "84.0 with udlm (no deviation; " in write_summary(make(metrics=rows))[1]


def test_numbers_of_steps_are_whole_where_rows_without_any_have_made_them_floats(make):
    metrics = make().metrics.astype({"nfe": "float64"})
    text = " ".join(write_summary(make(metrics=metrics)))
    assert "at 1 sampling step " in text
    assert "at 32 sampling steps " in text


RANDOM = "udlm, which learns from random ones,"
SUBJECT = "pairflow, which learns from sources paired with the data,"
TIES = f"at no number of sampling steps (1, 4 and 32) is {SUBJECT} shown to differ from {RANDOM[:-1]}."
EVERY = f"{RANDOM} at every number of sampling steps (1, 4 and 32)"


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ((352, 498, 662), f"{SUBJECT} is better than {EVERY}."),
        ((35, 49, 66), f"{SUBJECT} is worse than {EVERY}."),
        (
            (352, 498, 66),
            f"{SUBJECT} is better than {RANDOM} at 1 and 4 sampling steps and worse than it at 32 sampling "
            "steps.",
        ),
        (
            (352, 245, 66),
            f"{SUBJECT} is better than {RANDOM} at 1 sampling step, worse than it at 32 sampling "
            f"steps and not shown to differ from it at 4 sampling steps.",
        ),
        ((84, 245, 437), TIES),
    ],
    ids=["better", "worse", "mixed", "mixed with a tie", "ties"],
)
def test_the_first_sentence_says_who_is_better(make, metric_rows, ours, expected):
    counts = {"udlm": (84.0, 245.0, 437.0), "pairflow": ours}
    first = write_summary(make(metrics=noisy(metric_rows(counts))))[0]
    expected = f"In this training, {expected} In this training, the number of valid molecules of pairflow"
    assert first.startswith(expected)


def test_lower_distances_are_better(make_images):
    rows = make_images().metrics
    trials = pd.concat([rows.assign(trial=trial) for trial in range(3)], ignore_index=True)
    trials = noisy(trials)
    first = write_summary(make_images(metrics=trials))[0]
    assert first.startswith(f"In this training, {SUBJECT} is better than udlm")
    assert first.endswith(f"; lower is better.{SINGLE} 3 comparisons.")


def test_a_gain_that_is_impossible_is_not_said_to_show(make_images):
    """FD of UDLM is 84, 30, 17.5. Standard errors of 3 times t(1 - 0.05 / 4, 2) = 6.205 are 18.6."""
    rows = pd.concat([make_images().metrics.assign(trial=trial) for trial in range(3)], ignore_index=True)
    wide = rows.value + 6 * (noisy(rows).value - rows.value)
    first = write_summary(make_images(metrics=rows.assign(value=wide)))[0]
    assert first.endswith(
        "; lower is better. A difference of about 18.6 at 4 sampling steps would have shown. No possible "
        f"gain would have shown at 32 sampling steps.{SINGLE} 3 comparisons."
    )


def test_single_values_decide_nothing_and_say_so(make, metric_rows):
    contents = make(metrics=metric_rows(BOTH, trials=1))
    relative, quality, *_ = write_summary(contents)
    assert relative == (
        "In this training, the number of valid molecules of pairflow less that of udlm: +268.0 at 1 sampling "
        "step (not tested: a single value) and +225.0 at 32 sampling steps (not tested: a single value); "
        "higher is better."
    )
    assert "one value each" in quality


def test_nan_is_not_a_number_of_molecules(make):
    metrics = make().metrics
    udlm = metrics.method == "udlm"
    text = " ".join(write_summary(make(metrics=metrics.assign(value=metrics.value.mask(udlm)))))
    assert "nan" not in text
    assert "udlm" not in text
    some = noisy(metrics.assign(value=metrics.value.mask(udlm & (metrics.nfe == 4))))
    assert "at every number of sampling steps (1 and 32)" in write_summary(make(metrics=some))[0]


def test_what_is_not_decided_says_what_would_have_shown(make, metric_rows):
    """2 more molecules, 4 standard errors, have p = 0.057 before Holm's correction."""
    counts = {"udlm": (84.0, 245.0, 437.0), "pairflow": (86.0, 498.0, 437.0)}
    first = write_summary(make(metrics=noisy(metric_rows(counts))))[0]
    assert (
        "better than udlm, which learns from random ones, at 4 sampling steps and not shown to differ"
        in first
    )
    assert first.endswith(
        " A difference of about 3.1 at 1 sampling step and 3.1 at 32 sampling steps would have shown."
        f"{SINGLE} 3 comparisons."
    )


def test_two_seeds_are_not_tested(make, metric_rows):
    """Differences of the seeds are 2 and 3, 1 and 2, 0 and 1."""
    counts = {"udlm": (84, 245, 437), "pairflow": (86, 246, 437)}
    rows = metric_rows(counts, seeds=(0, 1))
    rows["value"] += rows.seed * (rows.method != "udlm")
    first, *_ = write_summary(make(settings={"methods": list(counts)}, metrics=rows))
    reason = "(not tested: only 2 seeds, and a test needs 3)"
    assert first == (
        f"The number of valid molecules of pairflow less that of udlm: +2.5 at 1 sampling step {reason} and "
        f"+0.5 at 32 sampling steps {reason}; higher is better."
    )


def test_many_comparisons_decide_less(many):
    """The rule is that of `pairflow compare`: Holm's correction is over all methods, not over PairFlow."""
    few = make_few(many, ["udlm", "pairflow"])
    assert "is better than udlm" in write_summary(few)[0]
    assert "Holm" not in write_summary(few)[0]
    first = write_summary(make_few(many, many.methods))[0]
    assert "is not shown to differ from udlm" in first
    assert first.endswith(f"{SINGLE} 11 comparisons.")


def make_few(contents, methods):
    """Some methods, whose trials at one step differ from UDLM's by 3 with standard error 0.5: p = 0.027."""
    rows = contents.measured[contents.measured.method.isin(methods) & (contents.measured.nfe == 1)]
    rows = rows.assign(value=rows.trial.map({0: 100.0, 1: 103.0, 2: 101.0}))
    gain = rows.trial.map({0: 3.5, 1: 2.0, 2: 3.5}).where(rows.method != "udlm", 0.0)
    return dataclasses.replace(contents, metrics=rows.assign(value=rows.value + gain))


def test_masks_and_uniform_noise_are_compared_at_equal_calls(make, metric_rows):
    """Two calls are NFE 2 of mdlm and NFE 1 of pairflow, three are NFE 3 and NFE 2."""
    rows = noisy(metric_rows({"mdlm": (10, 200, 400), "udlm": (1, 2, 3), "pairflow": (300, 350, 500)}))
    rows["nfe"] = rows.nfe.map({1: 1, 4: 2, 32: 3})
    main = {"main": {"nfe": (1, 2, 3), "trials": 3}}
    contents = make(settings={"methods": ["mdlm", "udlm", "pairflow"], "evaluations": main}, metrics=rows)
    of_udlm, of_mdlm, *_ = write_summary(contents)
    assert "+299.0 at 1 sampling step (" in of_udlm
    assert of_mdlm.startswith(
        "In this training, pairflow, which learns from sources paired with the data, is better than mdlm, "
        "which learns from masks, at 2 network calls and worse than it at 3 network calls. In this training, "
        "the number of valid molecules of pairflow less that of mdlm: +100.0 at 2 network calls (95 % "
    )
    assert " and −50.0 at 3 network calls (" in of_mdlm
    [block] = evaluation_blocks(contents)
    assert block.tables[0].call_rows == {
        "mdlm": (1, 2, 3),
        "udlm and pairflow": (2, 3, 4),
    }
    lines = {line["name"]: line["points"] for line in json.loads(block.main.charts[0].points)}
    assert [lines[name][0][2][0] for name in ("mdlm", "pairflow")] == ["NFE 1, 1 call", "NFE 1, 2 calls"]
    [csv] = [sheet for sheet in list_sheets(contents, None, [block], None, {}, []) if "quality" in sheet.name]
    assert {(row["method"], row["nfe"], row["calls"]) for row in csv.records} >= {
        ("mdlm", 2, 2),
        ("pairflow", 2, 3),
    }
    assert "make one call of the network more than mdlm" in render(contents)


def test_perplexities_at_unequal_entropy_are_no_verdict(make, metric_rows):
    counts = {"udlm": (90.0, 60.0, 30.0), "pairflow": (50.0, 40.0, 20.0)}
    rows = noisy(metric_rows(counts)).query("metric == 'valid'")
    perplexity = rows.assign(metric="judge_ppl", extractor="kneser-ney-6-1a2b3c4d")
    entropy = rows.assign(metric="entropy", value=2.4 - 0.2 * ((rows.method == "udlm") & (rows.nfe == 32)))
    data = {"source": "shakespeare", "tokeniser": "characters", "length": 16}
    contents = make(
        settings={"data": data, "methods": [*counts], "correlation": None},
        metrics=pd.concat([perplexity, entropy], ignore_index=True),
    )
    assert (
        "lower is better. Perplexities compare at equal entropy only, but the entropies are 2.40 against "
        "2.20 nats at 32 sampling steps: compare over temperatures (evaluations.main.temperatures). Each"
    ) in write_summary(contents)[0]
    assert " entropies, 2.20 to 2.40 nats, are too unlike for" in make_headline(contents).sentence
    assert write_summary(contents)[1].endswith("1 seed).")
    less = contents.metrics.value - 0.2 * (contents.metrics.metric == "entropy") * (
        contents.metrics.method == "udlm"
    )
    ranked = write_summary(dataclasses.replace(contents, metrics=contents.metrics.assign(value=less)))[1]
    assert ranked.endswith("; entropies of 2.20 to 2.40 nats, so that perplexities do not compare).")
