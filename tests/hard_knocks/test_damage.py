"""A truncated, altered or swapped artifact of any kind ends in one line that names it; never in a result."""

import json
import os
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from pairflow.artifacts import read_table
from pairflow.cli import main
from pairflow.errors import InputError

FLIPS = 600
READERS = {  # an artifact -> the step that reads it
    "data/train.parquet": "pair",
    "seed0/pairs/pairflow.parquet": "train",
    "seed0/models/pairflow/model.safetensors": "sample",
    "seed0/models/pairflow/model.json": "sample",
    "seed0/samples/pairflow/main/nfe1.parquet": "evaluate",
    "reference/molecules.parquet": "evaluate",
    "data/smiles.parquet": "evaluate",
    "seed0/metrics/pairflow/main/nfe1.parquet": "report",
    "seed0/models/pairflow/log.parquet": "report",
    "data/vocabulary.json": "report",
}


@pytest.fixture(scope="module")
def damaged(calm, place):
    """A copy of the undisturbed miniature, to be harmed and restored."""
    made = place("damaged")
    shutil.copytree(calm.root, made.root)
    return made


def refused(place, step, monkeypatch, capsys) -> str:
    """The line that the step ends with, exit code 2; it has written nothing."""
    outputs = place.outputs(step)
    kept = {path: path.read_bytes() for path in outputs}
    for path in outputs:
        path.unlink()
    monkeypatch.chdir(place.folder)
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as end:
            main(place.command(step))
        assert end.value.code == 2
        assert not any(path.exists() for path in outputs)
        return capsys.readouterr().err.splitlines()[-1]
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


def truncated(path) -> bytes:
    content = path.read_bytes()
    return content[: len(content) // 2]


def altered(path) -> bytes:
    """One bit flipped in what the file says: of a table, in its first column."""
    content = path.read_bytes()
    place = len(content) // 2
    if path.suffix == ".parquet":
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        place = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1
    return content[:place] + bytes([content[place] ^ 2]) + content[place + 1 :]


@pytest.mark.parametrize("harm", [truncated, altered])
@pytest.mark.parametrize("artifact", READERS)
def test_a_harmed_artifact_is_named(damaged, artifact, harm, monkeypatch, capsys):
    path = damaged.root / artifact
    content = path.read_bytes()
    path.write_bytes(harm(path))
    try:
        line = refused(damaged, READERS[artifact], monkeypatch, capsys)
    finally:
        path.write_bytes(content)
    assert line.startswith(f"pairflow {READERS[artifact]}: error: ")
    assert path.name in line or path.parent.name in line


@pytest.mark.parametrize("artifact", ["data/train.parquet", "seed0/samples/pairflow/main/nfe1.parquet"])
def test_no_single_flipped_bit_of_a_table_goes_unnoticed(calm, artifact, tmp_path):
    """One bit of each of about FLIPS bytes: the table is refused, or reads as it was."""
    content, path = (calm.root / artifact).read_bytes(), tmp_path / "table.parquet"
    whole, science = read_table(calm.root / artifact)
    bits = np.random.default_rng(0).integers(0, 8, len(content))
    places, unnoticed = range(0, len(content), max(1, len(content) // FLIPS)), 0
    for place in places:
        harmed = bytearray(content)
        harmed[place] ^= 1 << int(bits[place])
        path.write_bytes(harmed)
        try:
            table, found = read_table(path)
        except InputError:
            continue
        unnoticed += 1
        assert table.to_pydict() == whole.to_pydict()
        assert found == science
    assert unnoticed < len(places) / 2  # statistics, padding and names of the format itself


@pytest.mark.parametrize(
    ("step", "changes", "text"),
    [
        ("evaluate", {"--samples": "results/mini/data/train.parquet"}, "holds tokens, expected samples"),
        ("train", {"--data": "results/mini/data/train.parquet"}, "holds tokens, expected pairs"),
        ("pair", {"--tokens": "results/mini/data/smiles.parquet"}, "holds smiles, expected tokens"),
    ],
)
def test_swapped_kinds_are_refused(damaged, step, changes, text, monkeypatch, capsys):
    command = damaged.command
    with monkeypatch.context() as patch:
        patch.setattr(damaged, "command", lambda each, *more: replaced(command(each, *more), changes))
        assert text in refused(damaged, step, monkeypatch, capsys)


def replaced(command, changes):
    flags = [None, *command]
    return [changes.get(flag, value) for flag, value in zip(flags, command, strict=False)]


@pytest.mark.parametrize("kind", ["samples", "metrics"])
def test_files_of_another_method_or_run_in_their_place_are_refused_by_the_report(
    damaged, kind, monkeypatch, capsys
):
    """Samples drawn with another seed, and metrics of them, under the name of those of seed 0."""
    path = damaged.root / "seed0" / kind / "pairflow/main/nfe1.parquet"
    content, files = path.read_bytes(), {}
    settings = damaged.experiment.sample_settings("main", 1, 1).model_dump(mode="json")
    monkeypatch.chdir(damaged.folder)
    for step in ("sample", "evaluate"):
        command = replaced(
            damaged.command(step), {"--settings": json.dumps(settings)} if step == "sample" else {}
        )
        files |= {each: each.read_bytes() for each in damaged.outputs(step)}
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 0
    other = path.read_bytes()
    for each, before in files.items():
        each.write_bytes(before)
    assert other != content
    path.write_bytes(other)
    try:
        line = refused(damaged, "report", monkeypatch, capsys)
    finally:
        path.write_bytes(content)
    assert f"{kind}/pairflow/main/nfe1.parquet: from another configuration, seed is 1 there and 0" in line


def test_clocks_that_went_back_or_ahead_change_nothing(calm, place):
    """States and inputs from the year 2100 and from 1980: what is saved is taken up, to the same bytes."""
    knocked = place("clock")
    shutil.copytree(calm.root / "data", knocked.root / "data")
    process = knocked.start("pair", "--resume", "states", "--save-every", "0")
    while len(list((knocked.folder / "states").rglob("*.block"))) < 3:
        assert process.is_alive(), knocked.errors()
    process.kill()
    process.join()
    for number, path in enumerate(sorted(knocked.folder.rglob("*"))):
        os.utime(path, (4.1e9, 4.1e9) if number % 2 else (3.2e8, 3.2e8))
    before = len(list((knocked.folder / "states").rglob("*.block")))
    process = knocked.start("pair", "--resume", "states", "--save-every", "0")
    while len(list((knocked.folder / "states").rglob("*.block"))) < before + 1:
        assert process.is_alive(), knocked.errors()
    process.kill()
    process.join()
    knocked.finish("pair", "--resume", "states")
    [mine], [theirs] = knocked.outputs("pair"), calm.outputs("pair")
    assert mine.read_bytes() == theirs.read_bytes()
