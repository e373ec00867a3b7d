"""The step `paper` on files that the report step could have written."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from pairflow.artifacts import Metadata, as_metrics, read_table, write_table
from pairflow.config import PaperSettings
from pairflow.steps.paper import main

QM9 = {
    "description": "Constructed numbers",
    "scale": "reduced",
    "data": {"source": "qm9", "length": 32},
    "network": {"name": "mlp"},
    "training": {"batch_size": 256, "iterations": 100, "learning_rate": 1e-3},
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1], "samples": 1024, "trials": 3}},
}


@pytest.fixture
def paper(tmp_path):
    """Run the step on `results/`, with an experiment `small`; returns how it ended and the page's text."""

    def run(settings=QM9):
        page = tmp_path / "page.html"
        given = json.dumps({"experiments": {"small": settings}})
        options = ["--settings", given, "--results", tmp_path / "results"]
        outputs = ["--tables", tmp_path / "tables", "--values", tmp_path / "values.parquet", "--out", page]
        done = CliRunner().invoke(main, [*map(str, options), *map(str, outputs)])
        return done, page.read_text(encoding="utf-8") if page.is_file() else ""

    return run


def finish(root, settings=QM9, kind="metrics"):
    """The files of a finished experiment that was made with `settings`."""
    root.mkdir(parents=True)
    rows = [
        {"method": method, "nfe": 1, "trial": trial, "metric": "valid", "value": value + trial}
        for method, value in (("udlm", 30.0), ("pairflow", 45.0))
        for trial in range(3)
    ]
    frame = as_metrics(pd.DataFrame(rows), seed=0, evaluation="main", samples=1024)
    [made] = PaperSettings(experiments={"x": settings}).model_dump(mode="json")["experiments"].values()
    write_table(root / "metrics.parquet", frame, Metadata(kind=kind, parameters=made))
    timings = pd.DataFrame(columns=["step", "method", "seconds", "device", "seed"])
    write_table(root / "timings.parquet", timings, Metadata(kind="timings"))


def test_a_finished_experiment_is_shown(paper, tmp_path):
    finish(tmp_path / "results" / "small")
    done, page = paper()
    assert (done.exit_code, done.stderr) == (0, "")
    assert "small: reduced scale, 1 training seed" in page
    assert "same sign" in page
    text = (tmp_path / "tables" / "qm9_results_valid-small.tex").read_text()
    assert r"UDLM & $31.0 \pm 1.0$" in text
    assert len(list((tmp_path / "tables").glob("*.csv"))) == 26
    values = pd.read_parquet(tmp_path / "values.parquet")
    cells = values[(values.table == "qm9_results_valid") & (values.experiment == "small")]
    cells = cells[cells.measured.notna()]
    assert list(zip(cells.method, cells.nfe, cells.measured, strict=True)) == [
        *(("udlm", 1, 31.0), ("pairflow", 1, 46.0))
    ]
    assert not list(tmp_path.rglob("*.partial"))
    # Tables of an experiment that is gone go, too.
    (tmp_path / "results" / "small" / "metrics.parquet").unlink()
    paper()
    assert not (tmp_path / "tables" / "qm9_results_valid-small.tex").exists()


def test_stale_metrics_are_left_out_and_named(paper, tmp_path):
    finish(tmp_path / "results" / "small")
    training = {"batch_size": 256, "iterations": 200, "learning_rate": 1e-3}
    _, page = paper(QM9 | {"description": "said otherwise"})
    assert "Left out" not in page  # the same experiment
    done, page = paper(QM9 | {"training": training})
    assert done.exit_code == 0
    named = "small/metrics.parquet: made with another configuration, which differs in 'training': rerun"
    assert named in done.stderr
    assert "differs in &#39;training&#39;" in page
    assert "no finished experiment" in page


FOREIGN = {
    "bytes": "metrics.parquet: damaged, or not a Parquet file that pairflow wrote",
    "kind": "metrics.parquet: holds samples, expected metrics",
    "parameters": "metrics.parquet: not the metrics of an experiment of this version",
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_foreign_metrics_are_left_out_and_named(paper, tmp_path, foreign):
    path = tmp_path / "results" / "small" / "metrics.parquet"
    finish(path.parent, kind="samples" if foreign == "kind" else "metrics")
    if foreign == "bytes":
        path.write_bytes(b"not Parquet")
    if foreign == "parameters":
        write_table(path, read_table(path)[0], Metadata(kind="metrics", parameters={"nfe": 1}))
    done, page = paper()
    assert done.exit_code == 0
    assert FOREIGN[foreign] in done.stderr
    assert "Left out." in page


def test_nothing_is_finished(paper, tmp_path):
    done, page = paper()
    assert (done.exit_code, done.stderr) == (0, "")
    assert "no finished experiment" in page
    assert "1,074 are not run." in page
