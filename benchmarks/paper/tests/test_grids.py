import numpy as np
import pandas as pd
import pytest

from benchmarks.paper.grids import PaperCell, PaperSection, make_sections, statuses
from benchmarks.paper.verdicts import Comparison, Status
from pairflow.errors import InputError

THREE = [[50.0, 52.0], [49.0, 51.0], [51.0, 55.0]]  # seeds' means 51, 50, 53


def section(runs, table="qm9_results_valid") -> PaperSection:
    [found] = [each for each in make_sections(runs) if each.table == table]
    return found


def cell(runs, name="MDLM", column="1", table="qm9_results_valid", grid=0) -> PaperCell:
    found = section(runs, table).grids[grid]
    [row] = [row for row in found.rows if row.label == name]
    [cells] = row.runs.values()
    return cells[found.columns.index(column)]


def effects(runs, name="PairFlow", table="qm9_results_valid", grid=0):
    found = section(runs, table).grids[grid]
    [row] = [row for row in found.effects if row.method == name]
    return row


@pytest.mark.parametrize(
    ("seeds", "changes", "status", "text", "spread", "reason"),
    [
        (THREE, {}, Status.AGREES, "51.3", "1.5", ""),  # the paper has 51.4
        ([[value + 40 for value in trials] for trials in THREE], {}, Status.HIGHER, "91.3", "1.5", ""),
        ([[value - 40 for value in trials] for trials in THREE], {}, Status.LOWER, "11.3", "1.5", ""),
        (THREE[:1], {}, Status.UNJUDGED, "51.0", "1.4", "1 training seed, 3 are needed"),
        (THREE[:2], {}, Status.UNJUDGED, "50.5", "0.7", "2 training seeds, 3 are needed"),
        # seeds without a value do not count
        (
            [THREE[0], [np.nan], THREE[2]],
            {},
            Status.UNJUDGED,
            "52.0",
            "1.4",
            "2 training seeds, 3 are needed",
        ),
        ([[51.0]], {}, Status.UNJUDGED, "51.0", "", "1 training seed, 3 are needed"),
        (THREE, {"scale": "reduced"}, Status.EFFECT, "51.3", "1.5", "reduced scale"),
        (
            THREE,
            {"data": {"training_rows": 1000}},
            Status.EFFECT,
            "51.3",
            "1.5",
            "data.training_rows is 1,000, in the paper not set",
        ),
    ],
)
def test_values_and_their_verdicts(make_run, seeds, changes, status, text, spread, reason):
    found = cell([make_run({("mdlm", 1): seeds}, seeds=tuple(range(len(seeds))), **changes)])
    assert (found.status, found.text, found.spread, found.measured.reason) == (status, text, spread, reason)
    assert (found.difference == "") == (status is Status.EFFECT)
    assert (found.margin == "") == bool(reason)


def test_without_a_value_nothing_was_run(make_run):
    values = {("mdlm", 1): [[np.nan]] * 3, ("mdlm", 2): THREE}
    found = cell([make_run(values, methods=("mdlm",))])
    assert (found.status, found.text) == (Status.NOT_RUN, "")


def test_another_number_of_samples_is_not_judged(make_run, metric_rows):
    evaluations = {"main": {"nfe": [1], "samples": 512, "trials": 10}}
    rows = metric_rows({("mdlm", 1): THREE}, samples=512)
    found = cell([make_run(rows, methods=("mdlm",), evaluations=evaluations)])
    assert found.measured.reason == "evaluations.main.samples is 512, in the paper 1,024"


def test_the_evaluation_with_the_papers_samples_comes_first(make_run, metric_rows):
    counts = {"quick": 64, "main": 1024}
    evaluations = {name: {"nfe": [1], "samples": count, "trials": 10} for name, count in counts.items()}
    quick = metric_rows({("mdlm", 1): [[3.0, 4.0]] * 3}, samples=64, evaluation="quick")
    rows = [quick, metric_rows({("mdlm", 1): THREE})]
    found = cell([make_run(pd.concat(rows), methods=("mdlm",), evaluations=evaluations)])
    assert found.status is Status.AGREES


def test_numbers_of_redi_are_judged_and_its_effects_are_confounded(make_run):
    values = {(name, 1): THREE for name in ("udlm+redi", "pairflow+redi")}
    runs = [make_run(values, methods=("udlm+redi", "pairflow+redi"))]
    assert cell(runs, "UDLM+ReDi").judged
    [effect, *_] = effects(runs, "PairFlow+ReDi").runs["qm9"]
    assert effect.here is not None
    assert effect.confounded
    assert effect.comparison is None
    assert cell(runs, "PairFlow+ReFlow x1", table="qm9_rect_validity").judged


@pytest.mark.parametrize(
    ("baseline", "ours", "comparison", "ratio"),
    [
        ([38.0, 39.0, 40.0], [44.0, 45.0, 46.0], Comparison.SAME, 45 / 39),
        ([50.0, np.nan, 52.0, 51.0], [70.0, 71.0, 72.0], Comparison.SAME, 71 / 51),  # of trials with a number
        ([50.0, np.nan, 52.0], [70.0, 71.0, 72.0], Comparison.UNDECIDED, 71 / 51),  # which are two
        ([50.0, 51.0, 52.0], [40.0, 41.0, 42.0], Comparison.OPPOSITE, 41 / 51),
        ([30.0, 50.0], [30.0, 50.0], Comparison.UNDECIDED, 1),
        ([10.0], [300.0], Comparison.UNDECIDED, 30),
    ],
)
def test_effects_are_compared_at_any_scale(make_run, baseline, ours, comparison, ratio):
    values = {("udlm", 1): [baseline], ("pairflow", 1): [ours]}
    row = effects([make_run(values, scale="reduced", seeds=(0,))])
    effect, *others = row.runs["qm9"]
    assert (effect.comparison, effect.here.ratio) == (comparison, pytest.approx(ratio))
    assert {each.comparison for each in others} == {None}
    assert (row.method, row.baseline) == ("PairFlow", "UDLM")


@pytest.mark.parametrize(
    "values",
    [
        {("udlm", 1): THREE},
        {("pairflow", 1): THREE},
        {("udlm", 1): [[np.nan] * 3] * 3, ("pairflow", 1): THREE},
    ],
)
def test_an_effect_without_a_number_on_one_side_is_missing(make_run, values):
    row = effects([make_run(values)])
    assert all(each.here is each.comparison is None for cells in row.runs.values() for each in cells)


def test_subsets_are_compared_with_the_same_baseline(make_run):
    values = {("udlm", 1): [[1.0, 2.0, 1.5]], ("pairflow-sub4", 1): [[9.0, 9.5, 9.0]]}
    runs = [make_run(values, "zinc250k", source="zinc250k", seeds=(0,), methods=("udlm", "pairflow-sub4"))]
    row = effects(runs, "PairFlow (4-Sub)", "zinc250k_subset_validity")
    assert row.runs["zinc250k"][0].comparison is Comparison.SAME
    assert row.paper[-1].paper is None  # the column of pairing times


def image_rows(metric_rows, metric, extractor, reference="train", samples=1000, values=None):
    values = values or {("udlm", 1): [[130.0], [131.0], [132.0]], ("pairflow", 1): [[40.0], [41.0], [42.0]]}
    return metric_rows(values, metric, extractor=extractor, reference=reference, samples=samples)


def test_fid_is_judged_and_fd_is_not(make_run, metric_rows):
    settings = {"name": "mnist_binary", "source": "mnist_binary"}
    fid = make_run(image_rows(metric_rows, "fid", "inception-abc"), **settings)
    found = cell([fid], "PairFlow", table="binary_mnist_results")
    assert found.judged
    fd = make_run(image_rows(metric_rows, "fd", "classifier-abc"), **settings)
    found = cell([fd], "PairFlow", table="binary_mnist_results")
    assert found.status is Status.EFFECT
    assert found.measured.reason == found.measured.kind == "FD by classifier-abc, not FID"
    assert section([fid], "binary_mnist_results").grids[0].kinds == {}
    assert found.difference == ""
    [effect, *_] = effects([fd], table="binary_mnist_results").runs["mnist_binary"]
    assert effect.here.sign == -1
    assert effect.comparison is Comparison.SAME
    assert section([fd], "mnist_binary_fid_test").grids[0].runs == {}  # those are to the test images


def test_values_made_in_two_ways_show_no_effect(make_run, metric_rows):
    fid = image_rows(metric_rows, "fid", "inception-abc", values={("udlm", 1): [[130.0, 131.0]] * 3})
    fd = image_rows(metric_rows, "fd", "classifier-abc", values={("pairflow", 1): [[4.0, 4.1]] * 3})
    run = make_run(pd.concat([fid, fd]), "mnist_binary", source="mnist_binary")
    [effect, *_] = effects([run], table="binary_mnist_results").runs["mnist_binary"]
    assert effect.here is None


def test_pixels_are_shown_from_0_to_1(make_run, metric_rows):
    rows = image_rows(metric_rows, "nn_l2", None, values={("udlm", 1): [[255 * 8.0]] * 3})
    found = cell([make_run(rows, "m", source="mnist_binary")], "UDLM", table="mnist_binary_nn_distance")
    assert found.text == "8.00"


def test_eleven_columns(make_run, metric_rows):
    nfe = [2**k for k in range(11)]
    values = {(name, n): [[100.0 + n, 101.0 + n]] * 3 for name in ("udlm", "pairflow") for n in nfe}
    rows = image_rows(metric_rows, "fid", "inception-abc", samples=5000, values=values)
    evaluations = {"main": {"nfe": nfe, "samples": 5000, "trials": 2}}
    run = make_run(rows, "cifar10", source="cifar10", evaluations=evaluations)
    grid, scores = section([run], "cifar10_results").grids
    assert grid.columns == ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1,024"]
    [row] = [row for row in grid.rows if row.label == "PairFlow"]
    assert [each.text for each in row.runs["cifar10"]][-1] == "1,124.50"
    assert scores.runs == {}
    assert len(effects([run], table="cifar10_results").runs["cifar10"]) == 11
    # 50,000 samples are another evaluation's, and there is none.
    assert all(not grid.runs for grid in section([run], "appendix_cifar_fid_check").grids)


def test_two_extractors_fill_the_tables_of_cifar10_and_inception_that_of_ffhq(make_run, metric_rows):
    """Tables 21, 24 and 26 whole: each cell has a value, and all but the cosines an effect."""

    def make(source, **measured):
        nfe = [2**k for k in range(11)]
        values = {(name, n): [[100.0 + n]] * 3 for name in ("udlm", "pairflow") for n in nfe}
        rows = [
            metric_rows(values, metric, reference=reference, extractor=extractor, samples=5000)
            for metric, (reference, extractor) in measured.items()
        ]
        evaluations = {"main": {"nfe": nfe, "samples": 5000, "trials": 1}}
        extractors = ["inception", "dinov2"] if source == "cifar10" else "inception"
        changes = {"evaluations": evaluations, "features": extractors}
        return make_run(pd.concat(rows), source, source=source, **changes)

    of_test, of_train = ("test", "dinov2-d5383ea8"), ("train", "dinov2-d5383ea8")
    cifar10 = make(
        "cifar10", fid=("test", "inception"), fd=of_test, nn_l2=("train", "inception"), nn_cosine=of_train
    )
    runs = [cifar10, make("ffhq64", fid=("train", "inception"))]
    weights, unstated = (
        "by dinov2-d5383ea8, the paper’s weights are not known",
        "unstated: the paper does not say its",
    )
    for table, name, reasons in (
        ("cifar_fid_test", "cifar10", ["", f"FD {weights}"]),
        (
            "cifar_nn_distance",
            "cifar10",
            [f"{unstated} unit of the nearest-neighbour distance", f"cosine {weights}"],
        ),
        ("ffhq_fid", "ffhq64", [f"{unstated} number of images and flips"]),
    ):
        grids = section(runs, table).grids
        for grid, reason in zip(grids, reasons, strict=True):
            cells = [one for row in grid.rows for one in row.runs[name]]
            assert len(cells) == 22
            assert {one.measured.reason for one in cells} == {reason}
            compared = [effect.here is not None for row in grid.effects for effect in row.runs[name]]
            assert compared == ([] if reason.startswith("cosine") else [True] * 11)


def test_a_table_of_means_is_by_one_extractor(make_run, metric_rows):
    parts = [
        metric_rows({("udlm", 1): [[value]]}, "fd", reference="train", extractor=extractor)
        for value, extractor in ((1.0, "classifier-1a"), (2.0, "dinov2-0b"))
    ]
    run = make_run(pd.concat(parts), source="mnist_binary")
    with pytest.raises(InputError, match="qm9: fd has several extractors; give classifier-1a or dinov2-0b"):
        run.table("fd")
    assert run.table("fd", extractor="dinov2-0b").loc["udlm", 1] == 2.0


def test_a_method_that_the_paper_does_not_have(make_run):
    run = make_run({("pairflow-sub16+dcd", 1): THREE}, methods=("pairflow-sub16+dcd",))
    assert set(statuses(make_sections([run])).values()) == {Status.NOT_RUN, Status.OUTSIDE}


def test_correlation_and_coverage_have_their_own_rows(make_run, metric_rows):
    rows = [
        metric_rows(
            {("udlm", 256): [[31.86], [31.87], [31.88]]}, "total_correlation", evaluation="correlation"
        ),
        metric_rows({("udlm", 256): [[32.471]] * 3}, "total_correlation_ceiling", evaluation="correlation"),
        metric_rows({("forward", 1): [[0.6246]] * 3}, "coverage", evaluation="coverage").assign(nfe=None),
    ]
    settings = {"sources": 20_000, "samples": 10, "steps": 256}
    run = make_run(pd.concat(rows).astype({"nfe": "Int32"}), methods=("udlm",), correlation=settings)
    found = cell([run], "UDLM", "256", "appendix_tc_measure")
    assert (found.text, found.printed.unit, found.status) == ("31.87", "bits", Status.AGREES)
    assert found.measured.beside == "ceiling 32.47"
    found = cell([run], "QM9", "coverage (%)", "appendix_forward_velocity_coverage")
    assert (found.text, found.difference, found.status) == ("62.46", "+1.84", Status.UNJUDGED)
    assert found.measured.reason == "unstated: the paper does not say its number of forward steps"
    assert found.unjudged == "unstated"


def test_times_are_shown_and_never_judged(make_run):
    jobs = [("pair", "pairflow", 30.0), ("train", "udlm", 600.0), ("distill", "udlm+redi", 60.0)]
    jobs += [("teach", "udlm+redi", 120.0)]
    timings = pd.DataFrame(jobs, columns=["step", "method", "seconds"]).assign(device="cpu", seed=0)
    run = make_run({("udlm", 1): THREE}, timings=timings)
    texts = {
        column: cell([run], "QM9", column, "computation_cost_table").text
        for column in ("base (minutes)", "DCD (minutes)", "ReDi (minutes)", "PairFlow (minutes)")
    }
    assert list(texts.values()) == ["10", "", "3", "0.5"]
    found = cell([run], "QM9", "base (minutes)", "computation_cost_table")
    assert (found.status, found.measured.reason) == (Status.UNJUDGED, "another machine (cpu)")


def test_the_generative_perplexity_compares_and_that_of_another_judge_does_not(make_run, metric_rows):
    """The n-gram judge stands in for GPT-2 large; the transformer does not."""
    values = {("udlm", 4): [[299.0], [300.0], [298.0]]}
    judged = [
        metric_rows(values, "judge_ppl", extractor=name) for name in ("transformer-abc", "kneser-ney-3-abc")
    ]
    gpt2 = metric_rows(values, "gen_ppl", extractor="gpt2-large-abc")
    place = {"name": "UDLM", "column": "4", "table": "lm1b_gen_ppl"}
    settings = {"name": "lm1b_n16", "source": "lm1b_n16"}
    found = cell([make_run(pd.concat([*judged, gpt2]), **settings)], **place)
    assert (found.text, found.difference, found.status) == ("299.00", "−0.18", Status.UNJUDGED)
    assert found.unjudged == "unstated"
    found = cell([make_run(pd.concat(judged), **settings)], **place)
    assert (found.difference, found.status) == ("", Status.EFFECT)
    assert found.measured.reason == "perplexity by kneser-ney-3-abc, not GPT-2 large"
