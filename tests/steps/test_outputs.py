"""Commands refuse, before they work, to replace what is not theirs to replace."""

import os
from pathlib import Path

import numpy as np
import pytest

from pairflow.artifacts import read_table

INPUT, SAME = "is an input of this command; choose another name", "expected different outputs, found"
NO_FILE = "is there and is not a regular file; choose another name"


@pytest.fixture
def contents(here):
    """A working directory with files of all kinds, and a function that reads all of it."""
    names = ["train.parquet", "validation.parquet", "smiles.parquet", "mine.smi", "home/thesis.tex"]
    names += ["udlm/model.safetensors", "udlm/model.json", "results/x/data/train.parquet"]
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("mine")
    np.save("rows.npy", np.zeros((3, 2), np.uint8))
    Path("link.smi").symlink_to("mine.smi")
    Path("link").symlink_to("home")
    Path("loop").symlink_to("loop")
    os.mkfifo("pipe")
    return lambda: {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}


LOG = f"--log rows.npy: {INPUT}"
CIRCLE = "its symbolic links lead around in a circle"
DATA = {"data": "train.parquet", "validation": "validation.parquet"}
MODEL = {"model": "m/model.safetensors", "description": "m/model.json", "log": "m/log.parquet"}
PARTS = {name: f"new/{name}" for name in ("train", "validation", "vocabulary", "smiles", "known", "rejected")}
SOURCE = {"source": "mine.smi", "length": 100}
REPORT = {"root": "results/x", "metrics": "m.parquet", "timings": "t.parquet", "out": "report.html"}
PAPER = {"results": "results", "values": "values.parquet", "out": "paper.html"}
NO_FOLDER, TOKENS = "is there and is no folder; choose another name", "results/x/data/train.parquet"


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("preprocess", {"settings": SOURCE, **PARTS, "known": "link.smi"}, f"--known link.smi: {INPUT}"),
        ("preprocess", {**SOURCE, **PARTS, "known": "new/train"}, f"--train and --known: {SAME} new/train"),
        ("train", {"method": "udlm", **DATA, **MODEL, "log": "rows.npy", "data": "rows.npy"}, LOG),
        ("sample", {"model": "udlm", "out": "udlm/model.json"}, f"--out udlm/model.json: {INPUT}"),
        ("pair", {"tokens": "rows.npy", "out": "./rows.npy"}, f"--out rows.npy: {INPUT}"),
        ("cover", {"tokens": "train.parquet", "out": "pipe"}, f"--out pipe: {NO_FILE}"),
        ("cover", {"tokens": "train.parquet", "out": "loop/a.parquet"}, f"loop/a.parquet: {CIRCLE}"),
        ("cover", {"tokens": "train.parquet", "out": ""}, "--out: '.' is not the name of a file"),
        ("report", {"figures": "new", "out": "new/a.html"}, f"--out and --figures: {SAME} new/a.html"),
        ("report", {"figures": "new", "metrics": TOKENS}, f"--metrics {TOKENS}: {INPUT}"),
        ("paper", {**PAPER, "tables": "pipe"}, f"--tables pipe: {NO_FOLDER}"),
    ],
)
def test_an_output_replaces_no_input_no_device_and_no_other_output(
    step, contents, miniature, name, options, text
):
    before = contents()
    kind = ["molecules"] if name == "preprocess" else []
    given = REPORT | {"settings": miniature()} if name == "report" else {}
    run = step(name, *kind, **given | options)
    assert (run.exit_code, run.output) == (2, f"pairflow {name}: error: {text}\n")
    assert contents() == before


@pytest.mark.usefixtures("contents")
def test_an_output_that_is_a_link_stays_one(done):
    Path("out.parquet").symlink_to("home/out.parquet")
    done("pair", tokens="rows.npy", vocabulary_size=9, out="out.parquet", quiet=True)
    assert Path("out.parquet").is_symlink()
    assert read_table(Path("home/out.parquet"), "pairs")[0].num_rows


UNWRITABLE = "cannot be written: No such file or directory, disk /proc has "


@pytest.mark.usefixtures("contents")
@pytest.mark.parametrize(
    ("name", "options", "path"),
    [
        ("train", {"method": "udlm", **DATA, **MODEL, "resume": "/proc/m"}, "/proc/m"),
        ("pair", {"tokens": "none.npy", "vocabulary_size": 9, "out": "/proc/p.parquet"}, "/proc/p.parquet"),
        ("paper", {**PAPER, "tables": "/proc/tables"}, "/proc/tables"),
    ],
)
def test_an_output_that_cannot_be_written_is_named_before_any_input_is_read(step, name, options, path):
    """Nothing can be made in /proc, not even by root. None of the inputs can be read."""
    run = step(name, **options)
    assert run.exit_code == 2
    assert run.output.startswith(f"pairflow {name}: error: {path}: {UNWRITABLE}")
    assert run.output.count("\n") == 1
