"""The step `compare` on folders that the report step could have written."""

import json
import re

import pandas as pd
import pytest
from click.testing import CliRunner

from pairflow.artifacts import Metadata, as_metrics, digest, read_table, write_table
from pairflow.config import Experiment
from pairflow.steps.compare import main

SETTINGS = {
    "description": "Constructed numbers",
    "scale": "reduced",
    "seeds": [0, 1, 2],
    "data": {"source": "small_molecules", "length": 16},
    "network": {"name": "mlp"},
    "training": {"batch_size": 256, "iterations": 100, "learning_rate": 1e-3},
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1, 4], "samples": 1024, "trials": 2}},
}
IMAGES = SETTINGS | {"data": {"source": "digits"}, "features": {"extractor": "classifier", "iterations": 100}}
VALUES = {  # method, NFE -> the trials of each seed
    ("udlm", 1): [(9, 11), (11, 13), (13, 15)],
    ("udlm", 4): [(20, 20), (21, 21), (25, 25)],
    ("pairflow", 1): [(19, 21), (22, 24), (25, 27)],
    ("pairflow", 4): [(20, 20), (22, 22), (24, 24)],
}
TIMES = [("train", method, 60.0, "cpu", seed) for method in ("udlm", "pairflow") for seed in (0, 1, 2)]


@pytest.fixture
def finish(tmp_path):
    """Write a finished experiment; returns its folder."""

    def write(name="a", values=VALUES, settings=None, plus=0.0, seeds=None, metric="valid", **shared):
        settings = Experiment(**SETTINGS | (settings or {})).model_dump(mode="json")
        rows = [
            {"method": method, "nfe": nfe, "seed": seed, "trial": trial, "value": value + plus}
            for (method, nfe), of_seed in values.items()
            for seed, trials in zip(seeds or settings["seeds"], of_seed, strict=False)
            for trial, value in enumerate(trials)
        ]
        root = tmp_path / "results" / name
        root.mkdir(parents=True)
        samples = settings["evaluations"]["main"]["samples"]
        frame = as_metrics(
            pd.DataFrame(rows), **{"metric": metric, "evaluation": "main", "samples": samples} | shared
        )
        write_table(root / "metrics.parquet", frame, Metadata(kind="metrics", parameters=settings))
        times = pd.DataFrame(TIMES, columns=["step", "method", "seconds", "device", "seed"])
        write_table(root / "timings.parquet", times, Metadata(kind="timings"))
        return root

    return write


@pytest.fixture
def compare(tmp_path):
    """Run the step; returns how it ended, the page's text and its numbers."""

    def run(*folders, options=(), out="out/comparison.html"):
        page = tmp_path / out
        done = CliRunner().invoke(main, [*map(str, folders), *options, "--out", str(page)])
        numbers = page.with_suffix(".parquet")
        if done.exit_code:
            return done, "", None
        return done, page.read_text(encoding="utf-8"), read_table(numbers, "comparison")[0].to_pandas()

    return run


def one(numbers, row="difference", **where):
    """The one row of the numbers that has these values."""
    found = numbers[numbers.row == row]
    for key, value in where.items():
        found = found[found[key] == value]
    [record] = found.to_dict("records")
    return record


def words(page):
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_the_same_methods_in_two_experiments(compare, finish):
    """Seeds' means of `pairflow` at one step are 20, 23, 26; in `b` they are 5, 6, 7 more."""
    more = VALUES | {("pairflow", 1): [(24, 26), (28, 30), (32, 34)]}
    done, page, numbers = compare(finish(), finish("b", more))
    assert (done.exit_code, done.output) == (0, "")
    mean = one(numbers, "mean", experiment="a", method="pairflow", nfe=1)
    half = 4.302652729911275 * 3 / 3**0.5
    assert (mean["value"], mean["over"], mean["n"], mean["seeds"], mean["trials"]) == (23, "seeds", 3, 3, 6)
    assert (mean["std_between_seeds"], mean["std_between_trials"]) == pytest.approx((3, 2**0.5))
    assert (mean["low"], mean["high"]) == pytest.approx((23 - half, 23 + half))
    found = one(numbers, experiment="b", method="pairflow", nfe=1)
    assert (found["baseline_experiment"], found["baseline_method"]) == ("a", "pairflow")
    assert (found["value"], found["test"], found["over"], found["n"]) == (6, "paired t", "seeds", 3)
    assert found["statistic"] == pytest.approx(6 / (1 / 3**0.5))
    # Of two degrees of freedom p is 1 - t / sqrt(2 + t^2), here with t^2 = 108.
    assert found["p_holm"] == found["p"] == pytest.approx(1 - (108 / 110) ** 0.5)
    assert one(numbers, experiment="b", method="udlm", nfe=1)["reason"] == "no spread"
    assert "b paired t, 3 seeds +6.0 +3.5 to +8.5 p = 0.009 better" in words(page)
    assert "Differences from a, over all tables: 1 better." in words(page)


def test_the_page_shows_the_numbers_of_the_table(compare, finish):
    _, page, numbers = compare(finish(), finish("b", plus=0.5, seeds=(5, 6, 7)))
    shown = words(page)
    for row in numbers.itertuples():
        sign = "+" if row.row == "difference" else ""
        texts = [f"{value:{sign},.1f}".replace("-", "−") for value in (row.value, row.low, row.high)]
        middle = r" (± [\d.]+ )?"
        assert re.search(
            rf"{re.escape(texts[0])}{middle}{re.escape(texts[1])} to {re.escape(texts[2])}", shown
        )
    assert len(numbers) == 12
    assert "Welch, 3 against 3 seeds" in shown


def test_the_order_of_the_folders_only_flips_signs(compare, finish):
    values = VALUES | {("pairflow", 4): [(22, 23), (21, 21), (28, 20)]}
    folders = [finish(), finish("b", values)]
    (_, _, one_way), (_, _, other_way) = compare(*folders), compare(*reversed(folders))
    key = ["method", "nfe"]
    ours, theirs = (
        numbers[numbers.row == "difference"].sort_values(key).reset_index(drop=True)
        for numbers in (one_way, other_way)
    )
    pd.testing.assert_frame_equal(
        ours[[*key, "test", "n", "p", "p_holm"]], theirs[[*key, "test", "n", "p", "p_holm"]]
    )
    assert ours.value.tolist() == (-theirs.value).tolist()
    assert ours.low.dropna().tolist() == pytest.approx((-theirs.high).dropna().tolist())
    means = [
        numbers[numbers.row == "mean"].sort_values(["experiment", *key]) for numbers in (one_way, other_way)
    ]
    pd.testing.assert_frame_equal(*(each.reset_index(drop=True) for each in means))


def test_the_methods_of_one_experiment(compare, finish):
    """Against udlm, or the method that is asked for; by seeds, which all methods share."""
    folder = finish()
    _, page, numbers = compare(folder)
    found = one(numbers, method="pairflow", nfe=1)
    assert (found["value"], found["baseline_method"], found["test"], found["n"]) == (
        11,
        "udlm",
        "paired t",
        3,
    )
    assert "The methods of one experiment compared with udlm." in page
    _, _, numbers = compare(folder, options=["--baseline", "pairflow"])
    assert one(numbers, method="udlm", nfe=1)["value"] == -11


def test_of_one_seed_all_is_over_trials_and_says_so(compare, finish):
    _, page, numbers = compare(finish(settings={"seeds": [0]}))
    assert set(numbers.over) == {"trials"}
    assert "over 2 trials of one seed" in words(page)
    assert "One training seed. a: intervals and tests are over sampling trials of one training" in words(page)


def test_one_seed_beside_three_is_marked_in_its_row(compare, finish):
    _, page, numbers = compare(finish(), finish("b", settings={"seeds": [1]}, plus=1))
    assert set(numbers[numbers.experiment == "a"].over) == {"seeds"}
    assert set(numbers[numbers.experiment == "b"].over) == {"trials"}
    assert "a over 3 seeds" in words(page)
    assert "b over 2 trials of one seed" in words(page)
    assert "One training seed. b:" in words(page)


def test_a_seed_that_misses_a_number_of_steps_is_marked_in_its_cell(compare, finish):
    missing = VALUES | {("udlm", 4): VALUES["udlm", 4][:2], ("pairflow", 4): [(20, float("nan"))]}
    _, page, numbers = compare(finish(values=missing))
    assert one(numbers, "mean", method="udlm", nfe=4)["seeds"] == 2
    assert "20.5 ± 0.7 14.1 to 26.9 over 2 seeds" in words(page)
    assert "20.0 a single value" in words(page)
    assert one(numbers, method="pairflow", nfe=4)["reason"] == "a single value"
    assert "nan" not in words(page)


def test_one_method_and_one_value_is_a_page_without_differences(compare, finish):
    done, page, numbers = compare(
        finish(values={("udlm", 1): [(3,)]}, settings={"methods": ["udlm"], "seeds": [0]})
    )
    assert done.exit_code == 0
    assert numbers.row.tolist() == ["mean"]
    assert "No difference could be tested." in page


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (IMAGES, "data.source is digits in b and small_molecules in a"),
        ({"data": {"source": "small_molecules", "length": 24}}, "data.length is 24 in b and 16 in a"),
    ],
)
def test_other_data_are_shown_apart(compare, finish, settings, said):
    _, page, numbers = compare(finish(), finish("b", settings=settings))
    apart = f"Shown separately. {said}. So b has a separate section below, and nothing is tested across"
    assert apart in words(page)
    assert set(numbers.row) == {"mean"}


def test_other_training_rows_under_the_same_settings_are_shown_apart(compare, finish):
    folders = [finish(), finish("b")]
    for folder in folders:
        (folder / "data").mkdir()
        (folder / "data" / "train.parquet").write_bytes(folder.name.encode())
    _, page, numbers = compare(*folders)
    assert "b and a have the same settings, but different training rows" in page
    assert set(numbers.row) == {"mean"}


def test_other_numbers_of_samples_are_shown_apart(compare, finish):
    evaluations = {"main": {"nfe": [1, 4], "samples": 512, "trials": 2}}
    _, page, numbers = compare(finish(), finish("b", settings={"evaluations": evaluations}, plus=3))
    assert set(numbers.row) == {"mean"}
    assert "Shown separately. b has it from 512 samples. These values do not compare." in words(page)
    assert "Mean, deviation and 95 % interval, from 512 samples" in words(page)


def test_other_extractors_are_shown_apart_and_other_references_are_other_tables(compare, finish):
    first = finish("a", settings=IMAGES, metric="fd", reference="train", extractor="classifier-1a2b3c4d")
    other = finish("b", settings=IMAGES, metric="fd", reference="train", extractor="classifier-5e6f7a8b")
    third = finish("c", settings=IMAGES, metric="fd", reference="test", extractor="classifier-1a2b3c4d")
    _, page, numbers = compare(first, other, third)
    assert set(numbers.row) == {"mean"}
    assert "b has it by classifier-5e6f7a8b from 1,024 samples. These values do not compare" in words(page)
    assert "FD to the training images, by classifier-1a2b3c4d" in page
    assert "FD to the test images, by classifier-1a2b3c4d" in page


def test_cells_from_unequal_numbers_of_samples_are_not_tested(compare, finish, tmp_path):
    folder = finish(metric="fcd")
    table, metadata = read_table(folder / "metrics.parquet")
    rows = table.to_pandas()
    rows.loc[rows.method == "udlm", "samples"] = 300
    write_table(folder / "metrics.parquet", as_metrics(rows), metadata)
    _, page, numbers = compare(folder)
    assert "not tested: does not compare: 1,024 samples against 300 samples" in words(page)
    assert numbers[numbers.row == "difference"].value.isna().all()


def test_scales_and_settings_that_differ_are_said(compare, finish):
    network = {"name": "mlp", "width": 768}
    _, page, _ = compare(finish(), finish("b", settings={"scale": "paper", "network": network}, plus=1))
    assert "Different scales. a: reduced scale; b: paper’s scale." in words(page)
    assert "network.width 384 768" in words(page)
    assert "Reduced scale." not in page


def test_equal_rows_are_said(compare, finish):
    _, page, _ = compare(finish(), finish("b"))
    assert "The same numbers. a and b have identical metrics." in words(page)


def test_experiments_of_one_name_are_told_apart_by_their_paths(compare, finish):
    folders = [finish("x/demo"), finish("y/demo", plus=1)]
    _, page, numbers = compare(*folders)
    assert set(numbers.experiment) == {folder.as_posix() for folder in folders}
    assert folders[0].as_posix() in page


def test_the_same_inputs_give_the_same_bytes(compare, finish, tmp_path):
    folders = [finish(), finish("b", plus=1)]
    files = [tmp_path / f"{out}.{kind}" for out in ("one", "two") for kind in ("html", "parquet")]
    compare(*folders, out="one.html")
    compare(*folders, out="two.html")
    assert files[1].read_bytes() == files[3].read_bytes()
    assert files[0].read_text() == files[2].read_text().replace("two.parquet", "one.parquet")
    _, metadata = read_table(files[1], "comparison")
    assert set(metadata.inputs) == {"a/metrics.parquet", "b/metrics.parquet"}
    assert json.loads((tmp_path / "one.parquet.provenance.json").read_text())["command"]
    assert not list(tmp_path.rglob("*.partial"))


def refused(done, folder, said):
    assert done.exit_code == 2
    assert done.output == f"pairflow compare: error: {said.format(folder=folder)}\n"


@pytest.mark.parametrize(
    ("breaks", "said"),
    [
        ("folder", "{folder}: no such folder"),
        (
            "metrics",
            "{folder}: not a finished experiment: it has no metrics.parquet, which the report writes",
        ),
        ("timings", "{folder}/timings.parquet: no such file"),
        (
            "bytes",
            "{folder}/metrics.parquet: damaged, or not a Parquet file that pairflow wrote; "
            "rerun the step that writes it",
        ),
        ("kind", "{folder}/metrics.parquet: holds samples, expected metrics"),
        ("column", "{folder}/metrics.parquet: has no column 'value'"),
        (
            "twice",
            "{folder}/metrics.parquet: has two values of evaluation main, metric valid, method udlm, nfe 1, "
            "seed 0, trial 0",
        ),
        ("empty", "{folder}/metrics.parquet: has no value of any evaluation"),
    ],
)
def test_what_is_no_finished_experiment_is_refused_by_name(compare, finish, tmp_path, breaks, said):
    folder = finish()
    path = folder / "metrics.parquet"
    table, metadata = read_table(path)
    if breaks == "folder":
        folder = folder.with_name("absent")
    elif breaks == "bytes":
        path.write_bytes(path.read_bytes()[:100])
    elif breaks == "kind":
        write_table(path, table, Metadata(kind="samples"))
    elif breaks == "column":
        write_table(path, table.drop_columns("value"), metadata)
    elif breaks == "twice":
        write_table(path, pd.concat([table.to_pandas()] * 2), metadata)
    elif breaks == "empty":
        write_table(path, table.slice(0, 0), metadata)
    else:
        (folder / f"{breaks}.parquet").unlink()
    refused(compare(folder)[0], folder, said)
    assert not (tmp_path / "out").exists()


def test_metrics_of_another_version_are_refused(compare, finish):
    folder = finish()
    table, _ = read_table(folder / "metrics.parquet")
    write_table(folder / "metrics.parquet", table, Metadata(kind="metrics", parameters={"nfe": 1}))
    said = "{folder}/metrics.parquet: not the metrics of an experiment of this version "
    refused(compare(folder)[0], folder, said + "(its configuration: unknown key 'nfe' (did you mean 'nfe'?))")


def test_other_mistakes_are_one_line(compare, finish, tmp_path):
    folder = finish()
    (tmp_path / "link").symlink_to(folder)
    refused(compare(folder, tmp_path / "link")[0], folder, "{folder}: named twice")
    path = folder / "metrics.parquet"
    refused(compare(path)[0], path, "{folder}: is a file, expected the folder of an experiment")
    page = tmp_path / "page.txt"
    refused(compare(folder, out="page.txt")[0], page, "--out {folder}: expected a name that ends in .html")
    page = folder / "metrics.html"
    said = f"--out {page}: would replace {path}; choose another name"
    refused(compare(folder, out="results/a/metrics.html")[0], page, said)
    said = "--baseline pairflaw: not a method of a (did you mean 'pairflow'?): udlm, pairflow"
    refused(compare(folder, options=["--baseline", "pairflaw"])[0], folder, said)
    said = "--baseline: only for a single folder; of several folders the first one is the baseline"
    refused(compare(folder, finish("b"), options=["--baseline", "udlm"])[0], folder, said)


def test_help_has_an_example():
    text = CliRunner().invoke(main, ["--help"]).output
    assert "pairflow compare results/demo results/demo_wide --out comparison.html" in text


def test_times_of_other_metric_rows_are_refused(compare, finish):
    root = finish()
    table, _ = read_table(root / "timings.parquet", "timings")
    path, known = root / "timings.parquet", digest(root / "metrics.parquet")
    write_table(path, table, Metadata(kind="timings", inputs={"metrics": known}))
    assert compare(root)[0].exit_code == 0
    write_table(path, table, Metadata(kind="timings", inputs={"metrics": known[::-1]}))
    done, _, _ = compare(root)
    assert done.exit_code == 2
    assert f"{path}: does not belong to {root / 'metrics.parquet'}; rerun the report" in done.stderr
