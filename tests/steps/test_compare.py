"""The step `compare` on folders that the report step could have written."""

import json
import re
from dataclasses import replace
from shutil import rmtree

import pandas as pd
import pyarrow as pa
import pytest

from pairflow.artifacts import Metadata, as_metrics, digest, read_table, write_table
from pairflow.config import Experiment

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
IMAGES = SETTINGS | {"data": {"source": "digits"}, "features": {"extractor": "classifier"}}
VALUES = {  # method, NFE -> the trials of each seed
    ("udlm", 1): [(9, 11), (11, 13), (13, 15)],
    ("udlm", 4): [(20, 20), (21, 21), (25, 25)],
    ("pairflow", 1): [(19, 21), (22, 24), (25, 27)],
    ("pairflow", 4): [(20, 20), (22, 22), (24, 24)],
}
INVALID = "under half of its samples are valid molecules"
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
        facts = {"metric": metric, "evaluation": "main", "samples": samples}
        frame = as_metrics(pd.DataFrame(rows), **facts | shared)
        write_table(root / "metrics.parquet", frame, Metadata(kind="metrics", parameters=settings))
        times = pd.DataFrame(TIMES, columns=["step", "method", "seconds", "device", "seed"])
        write_table(root / "timings.parquet", times, Metadata(kind="timings"))
        return root

    return write


@pytest.fixture
def compare(step, tmp_path):
    """Run the step; returns how it ended, the page's words and its numbers."""

    def run(*folders, out="out/comparison.html", **options):
        page = tmp_path / out
        done = step("compare", *folders, out=page, **options)
        if done.exit_code:
            return done, "", None
        words = " ".join(re.sub("<[^>]*>", " ", page.read_text(encoding="utf-8")).split())
        return done, words, read_table(page.with_suffix(".parquet"), "comparison")[0].to_pandas()

    return run


def one(numbers, row="difference", **where):
    """The one row of the numbers that has these values."""
    where["row"] = row
    [record] = [record for record in numbers.to_dict("records") if where.items() <= record.items()]
    return record


def test_the_same_methods_in_two_experiments(compare, finish):
    """Seeds' means of `pairflow` at one step are 20, 23, 26; in `b` they are 5, 6, 7 more."""
    more = VALUES | {("pairflow", 1): [(24, 26), (28, 30), (32, 34)]}
    done, page, numbers = compare(finish(), finish("b", more))
    assert done.exit_code == 0
    assert done.output == (
        "Judged by the number of valid molecules among 1,024 samples, b is better than a with pairflow at 1 "
        f"sampling step, by 6.0; warnings about 4 models: {INVALID}.\n"
    )
    mean = one(numbers, "mean", experiment="a", method="pairflow", nfe=1)
    half = 4.302652729911275 * 3 / 3**0.5
    assert (mean["value"], mean["over"], mean["n"], mean["trials"]) == (23, "seeds", 3, 6)
    assert (mean["std_between_seeds"], mean["std_between_trials"]) == pytest.approx((3, 2**0.5))
    assert (mean["low"], mean["high"]) == pytest.approx((23 - half, 23 + half))
    found = one(numbers, experiment="b", method="pairflow", nfe=1)
    assert (found["baseline_experiment"], found["baseline_method"]) == ("a", "pairflow")
    assert (found["value"], found["test"], found["over"], found["n"]) == (6, "paired t", "seeds", 3)
    assert found["statistic"] == pytest.approx(6 / (1 / 3**0.5))
    # Of two degrees of freedom p is 1 - t / sqrt(2 + t^2), here with t^2 = 108.
    assert found["p_holm"] == found["p"] == pytest.approx(1 - (108 / 110) ** 0.5)
    assert one(numbers, experiment="b", method="udlm", nfe=1)["reason"] == "no spread"
    assert "b paired t, 3 seeds +6.0 +3.5 to +8.5 p = 0.009 better" in page
    assert f"Verdict {done.output.strip()}" in page


def test_the_page_shows_the_numbers_of_the_table(compare, finish):
    _, page, numbers = compare(finish(), finish("b", plus=0.5, seeds=(5, 6, 7)))
    for row in numbers.itertuples():
        sign = "+" if row.row == "difference" else ""
        texts = [f"{value:{sign},.1f}".replace("-", "−") for value in (row.value, row.low, row.high)]
        value, low, high = map(re.escape, texts)
        assert re.search(rf"{value} (± [\d.]+ )?{low} to {high}", page)
    assert len(numbers) == 12
    assert "Welch, 3 against 3 seeds" in page


def test_the_methods_of_one_experiment(compare, finish):
    """Against udlm, or the method that is asked for; by seeds, which all methods share."""
    folder = finish()
    rewrite(folder / "timings.parquet", inputs={"metrics": digest(folder / "metrics.parquet")})
    _, page, numbers = compare(folder)
    found = one(numbers, method="pairflow", nfe=1)
    assert (found["value"], found["baseline_method"]) == (11, "udlm")
    assert (found["test"], found["n"]) == ("paired t", 3)
    assert "The methods of one experiment compared with udlm." in page
    _, _, numbers = compare(folder, baseline="pairflow")
    assert one(numbers, method="udlm", nfe=1)["value"] == -11


def test_one_seed_is_over_its_trials_and_says_so_also_beside_three(compare, finish):
    single = finish("b", settings={"seeds": [1]}, plus=1)
    _, page, numbers = compare(single)
    assert set(numbers.over) == {"trials"}
    assert "over 2 trials of one seed" in page
    assert "One training seed. b: intervals and tests are over sampling trials of one training" in page
    _, page, numbers = compare(finish(), single)
    assert set(numbers[numbers.experiment == "a"].over) == {"seeds"}
    assert set(numbers[numbers.experiment == "b"].over) == {"trials"}
    for text in ("a over 3 seeds", "b over 2 trials of one seed", "One training seed. b:"):
        assert text in page


def test_a_seed_that_misses_a_number_of_steps_is_marked_in_its_cell(compare, finish):
    missing = VALUES | {("udlm", 4): VALUES["udlm", 4][:2], ("pairflow", 4): [(20, float("nan"))]}
    _, page, numbers = compare(finish(values=missing))
    assert one(numbers, "mean", method="udlm", nfe=4)["seeds"] == 2
    assert "20.5 ± 0.7 14.1 to 26.9 over 2 seeds" in page
    assert "20.0 a single value" in page
    assert one(numbers, method="pairflow", nfe=4)["reason"] == "a single value"
    assert "nan" not in page


def test_a_verdict_has_the_warnings_about_the_samples_and_trainings_that_it_compares(compare, finish):
    """Images: the distance of `pairflow` is better because its samples are copies; `udlm` was cut short."""
    settings = IMAGES | {"seeds": [0], "evaluations": {"main": {"nfe": [1], "samples": 1024, "trials": 3}}}
    folder = finish(
        values={("udlm", 1): [(9, 11, 10)], ("pairflow", 1): [(1, 2, 1.5)]},
        **{"settings": settings, "metric": "fd", "reference": "train", "extractor": "classifier-1a2b3c4d"},
    )
    table, metadata = read_table(folder / "metrics.parquet")
    rows = table.to_pandas()
    copies = rows.assign(metric="nn_copies", value=rows.method.map({"udlm": 0.1, "pairflow": 0.9}))
    write_table(folder / "metrics.parquet", as_metrics(pd.concat([rows, copies])), metadata)
    log = pd.DataFrame({"iteration": [1, 2, 3, 4], "loss": 1.0, "learning_rate": 0.1, "seconds": 1.0})
    place = folder / "seed0" / "models" / "udlm" / "log.parquet"
    place.parent.mkdir(parents=True)
    write_table(place, log.assign(validation_nll=[4.0, 3.0, 2.0, 1.0]), Metadata(kind="training log"))
    done, page, _ = compare(folder)
    first, *_ = done.output.splitlines()
    assert first == (
        "In this training, judged by FD to the training images, pairflow is better than udlm at 1 sampling "
        "step, by 8.5; warnings: pairflow: most of its samples equal training images at 1 sampling step; "
        "udlm: not trained to the end at 1 sampling step."
    )
    assert first in page
    assert "better warning about pairflow: most of its samples equal training images" in page


FD = {"settings": IMAGES, "metric": "fd", "reference": "train", "extractor": "classifier-1a2b3c4d"}


@pytest.mark.parametrize(
    ("other", "tokens", "said"),
    [
        ({"settings": IMAGES}, b"1", "data.source is digits in b and small_molecules in a"),
        ({}, b"2", "b and a have the same settings, but different training rows"),
    ],
    ids=["data", "rows"],
)
def test_other_data_are_refused(compare, finish, refused, other, tokens, said):
    folders = [finish(), finish("b", **other)]
    for folder, content in zip(folders, (b"1", tokens), strict=True):
        (folder / "data").mkdir()
        (folder / "data" / "train.parquet").write_bytes(content)
    refused(compare(*folders)[0], "compare", f"expected experiments on the same data: {said}")


def test_what_does_not_compare_is_shown_apart(compare, finish):
    others = [FD | {"extractor": "classifier-5e6f7a8b"}, FD | {"reference": "test"}]
    folders = [finish(name, **given) for name, given in zip("abc", [FD, *others], strict=True)]
    done, page, numbers = compare(*folders)
    assert set(numbers.row) == {"mean"}
    assert done.output.startswith("Nothing can be compared: ")
    assert done.output.strip() in page
    assert "Differences from" not in page


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


def rewrite(path, change=lambda table: table, **metadata):
    """The file with its table changed, or its metadata."""
    table, known = read_table(path)
    write_table(path, change(table), replace(known, **metadata))


@pytest.mark.parametrize(
    ("breaks", "said"),
    [
        (lambda path: rmtree(path.parent), "{folder}: no such folder"),
        (lambda path: path.unlink(), "{folder}: not a finished experiment: it has no metrics.parquet,"),
        (lambda path: path.with_name("timings.parquet").unlink(), "{folder}/timings.parquet: no such file"),
        (
            lambda path: rewrite(path, lambda rows: pa.concat_tables([rows, rows])),
            "{path}: has two values of evaluation main, metric valid, method udlm, nfe 1, seed 0, trial 0",
        ),
        (lambda path: rewrite(path, lambda rows: rows.slice(0, 0)), "{path}: has no value of any evaluation"),
        (lambda path: rewrite(path, parameters={"nfe": 1}), "{path}: not the metrics of an experiment of"),
        (
            lambda path: rewrite(path.with_name("timings.parquet"), inputs={"metrics": "0"}),
            "{folder}/timings.parquet: does not belong to {path}; rerun the report",
        ),
    ],
)
def test_what_is_no_finished_experiment_is_refused_by_name(compare, finish, refused, tmp_path, breaks, said):
    folder = finish()
    path = folder / "metrics.parquet"
    breaks(path)
    refused(compare(folder)[0], "compare", f"error: {said.format(folder=folder, path=path)}")
    assert not (tmp_path / "out").exists()


def test_other_mistakes_are_one_line(compare, finish, refused, tmp_path):
    folder = finish()
    (tmp_path / "link").symlink_to(folder)
    refused(compare(folder, tmp_path / "link")[0], "compare", f"{folder}: named twice")
    said = f"the numbers of --out, {folder / 'metrics.parquet'}: is an input of this command"
    refused(compare(folder, out="results/a/metrics.html")[0], "compare", said)
    said = "--baseline pairflaw: not a method of a (did you mean 'pairflow'?): udlm, pairflow"
    refused(compare(folder, baseline="pairflaw")[0], "compare", said)
    said = "--baseline: only for a single folder; of several folders the first one is the baseline"
    refused(compare(folder, finish("b"), baseline="udlm")[0], "compare", said)
