"""The step `paper` on files that the report step could have written."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.paper.settings import PaperSettings
from pairflow.artifacts import Metadata, as_metrics, read_table, token_column, write_table

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
def paper(step, tmp_path):
    """Run the step on `results/`, with an experiment `small`; returns how it ended and the page's text."""

    def run(settings=QM9):
        page = tmp_path / "page.html"
        files = {name: tmp_path / name for name in ("results", "tables")}
        files |= {"values": tmp_path / "values.parquet", "out": page}
        done = step("paper", settings={"experiments": {"small": settings}}, **files)
        return done, page.read_text(encoding="utf-8") if page.is_file() else ""

    return run


def finish(root, settings=QM9):
    """The files of a finished experiment; returns the path of its metrics."""
    root.mkdir(parents=True)
    rows = [
        {"method": method, "nfe": 1, "trial": trial, "metric": "valid", "value": value + trial}
        for method, value in (("udlm", 30.0), ("pairflow", 45.0))
        for trial in range(3)
    ]
    frame = as_metrics(pd.DataFrame(rows), seed=0, evaluation="main", samples=1024)
    [made] = PaperSettings(experiments={"x": settings}).model_dump(mode="json")["experiments"].values()
    write_table(root / "metrics.parquet", frame, Metadata(kind="metrics", parameters=made))
    timings = pd.DataFrame(columns=["step", "method", "seconds", "device", "seed"])
    write_table(root / "timings.parquet", timings, Metadata(kind="timings"))
    return root / "metrics.parquet"


def test_a_finished_experiment_is_shown(paper, tmp_path):
    path = finish(tmp_path / "results" / "small")
    done, page = paper(QM9 | {"description": "said otherwise"})
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
    path.unlink()
    done, page = paper()
    assert (done.exit_code, done.stderr) == (0, "")
    assert "no finished experiment" in page
    assert not (tmp_path / "tables" / "qm9_results_valid-small.tex").exists()


def test_samples_of_images_that_are_still_there_are_shown(paper, tmp_path):
    """Eight of the first trial, at the steps that the first evaluation says are shown."""
    evaluations = {"main": {"nfe": [1, 2, 4], "shown": [1, 2], "samples": 9, "trials": 2}}
    settings = QM9 | {"data": {"source": "mnist_binary"}, "evaluations": evaluations}
    root = tmp_path / "results" / "small"
    finish(root, settings)
    facts = {"kind": "samples", "length": 784, "vocabulary_size": 2, "shape": [1, 28, 28]}
    trials = pa.array([0] * 9 + [1] * 9, pa.int32())
    table = pa.table({"tokens": token_column(np.eye(18, 784, dtype=np.uint8), 2), "trial": trials})
    for method, nfe in (("udlm", 1), ("pairflow", 1), ("udlm", 2), ("udlm", 4)):
        path = root / f"seed0/samples/{method}/main/nfe{nfe}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = {"method": method, "nfe": nfe, "seed": 0, "samples": 9, "trials": 2}
        write_table(path, table, Metadata(**facts, parameters=drawn))
    done, page = paper(settings)
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.findall('alt="(8 samples of [^"]*)"', page) == [
        "8 samples of udlm at 1 sampling step",
        "8 samples of pairflow at 1 sampling step",
        "8 samples of udlm at 2 sampling steps",
    ]


def rewrite(path, **metadata):
    table, known = read_table(path)
    write_table(path, table, replace(known, **metadata))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.write_bytes(b"not Parquet"), "damaged, or not a Parquet file that pairflow wrote"),
        (lambda path: rewrite(path, kind="samples"), "holds samples, expected metrics"),
        (
            lambda path: rewrite(path, parameters={"nfe": 1}),
            "not the metrics of an experiment of this version",
        ),
        (
            lambda path: rewrite(path, parameters=QM9 | {"network": {"name": "mlp", "width": 768}}),
            "made with another configuration, which differs in 'network': rerun",
        ),
    ],
)
def test_stale_and_foreign_metrics_are_left_out_and_named(paper, tmp_path, change, said):
    path = finish(tmp_path / "results" / "small")
    change(path)
    done, page = paper()
    assert done.exit_code == 0
    assert f"small/metrics.parquet: {said}" in done.stderr
    assert "Left out." in page
    assert "no finished experiment" in page
