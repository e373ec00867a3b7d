"""The user's own split, by a column, a second file or folders, is kept for every kind of data."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pairflow.artifacts import read_metadata, read_table, token_array
from pairflow.config.file import read
from pairflow.errors import InputError
from pairflow.kinds import load_kind, source_of
from pairflow.kinds.images.settings import Images

MOLECULES = [a * "C" + x + b * "C" for a in range(1, 11) for b in range(1, 11) for x in "NOS" if a >= b]
LABELS = ["test" if k % 5 == 0 else "valid" if k % 5 == 1 else "Training" for k in range(len(MOLECULES))]
HELD_OUT = [smiles for smiles, label in zip(MOLECULES, LABELS, strict=True) if label != "Training"]


@pytest.fixture
def prepare(done):
    """Preprocess data of a kind; returns the step, the training rows and the rows that are held out."""

    def run(kind, **options):
        out = {Path(name).stem: name for name in load_kind(kind).settings.prepared}
        result = done("preprocess", kind, **options, **out, quiet=True)
        parts = (read_table(Path(f"{part}.parquet"), "tokens")[0] for part in ("train", "validation"))
        return result, *(token_array(table["tokens"]) for table in parts)

    return run


def smiles(part):
    table = pd.read_parquet("smiles.parquet")
    return set(table["smiles"][table["split"] == part])


def write_molecules():
    table = pd.DataFrame({"smiles": MOLECULES, "SPLIT": LABELS})
    table.to_csv("all.csv", index=False)
    table["smiles"][table["SPLIT"] == "Training"].to_csv("train.smi", index=False, header=False)
    Path("test.smi").write_text("".join(f"{each} name\n" for each in HELD_OUT))


@pytest.mark.parametrize(
    "own", [{"source": "all.csv", "split_column": "SPLIT"}, {"source": "train.smi", "held_out": "test.smi"}]
)
def test_molecules(prepare, own):
    write_molecules()
    result, train, validation = prepare("molecules", **own, length=24)
    assert smiles("validation") == set(HELD_OUT)
    assert smiles("train") == {*MOLECULES} - {*HELD_OUT}
    assert (len(train), len(validation)) == (len(MOLECULES) - len(HELD_OUT), len(HELD_OUT))
    assert f"{len(validation)} that are held out; 0 of these are equal to a training row" in result.stderr
    inputs = read_metadata(Path("train.parquet")).inputs
    assert len({*inputs.values()}) == (2 if "held_out" in own else 1)


def test_molecules_of_both_parts_are_counted(prepare):
    rows = "CCO,train OCC,test CCN,test NCC,train CCC,train CCS,test SCC,test"
    Path("a.csv").write_text("\n".join(["smiles,set", *rows.split()]))
    own = {"source": "a.csv", "split_column": "set", "length": 8}
    result, train, validation = prepare("molecules", **own)
    assert (len(train), len(validation)) == (3, 4)
    assert "2 of these are equal to a training row" in result.stderr
    result, train, validation = prepare("molecules", **own, drop_duplicates=True)
    assert (smiles("train"), smiles("validation")) == ({"CCO", "CCC"}, {"CCN", "CCS"})
    assert "2 rows are left out, because they repeat a molecule of the other part" in result.stderr


def test_rows_of_a_second_file_have_numbers_after_those_of_the_first(prepare):
    Path("a.smi").write_text("CCO\nCCN\n\nno molecule\nCCCC\n")
    Path("b.smi").write_text("CCS\nneither\n")
    prepare("molecules", source="a.smi", held_out="b.smi", length=8)
    rejected = pd.read_parquet("rejected.parquet")[["row", "text", "line"]]
    assert rejected.values.tolist() == [[2, "no", 4], [5, "neither", 7]]


def test_new_keeps_the_split_of_a_column_or_a_file(step, project):
    write_molecules()
    options = {"no_estimate": True, "quiet": True, "representation": "smiles"}
    told = step("new", "all.csv", **options).output
    assert "The column 'SPLIT' holds a split. To keep it: --split-column SPLIT." in told
    for name, file, own, line in (
        ("column", "all.csv", {"split_column": "SPLIT"}, "split_column: SPLIT"),
        ("file", "train.smi", {"held_out": "test.smi"}, "held_out: test.smi"),
    ):
        told = step("new", file, f"--name={name}", **own, **options).output
        assert "--split-column" not in told
        assert re.search(rf"for training +{len(MOLECULES) - len(HELD_OUT)}  {line}\n", told)
        assert re.search(rf"for validation +{len(HELD_OUT)}  0 more are in both parts\n", told)
        data = data_of(name)
        assert {key: data[key] for key in own} == own
        assert "validation_fraction" not in Path(f"experiments/{name}.yaml").read_text()


def data_of(name):
    """The section `data` of an experiment that `new` has written."""
    return read(Path("workflow_config.yaml")).experiments[name].data.model_dump()


def test_text(prepare, step, project):
    names = [f"{a}{b}{c}" for a in "abcdefgh" for b in "aeiou" for c in "klmnop"]
    Path("train.txt").write_text("\n".join(names[:200]) + "\n")
    Path("test.txt").write_text("\n".join([*names[200:], names[0], ""]))
    own = {"source": "train.txt", "held_out": "test.txt", "judge_fraction": 0.1}
    result, train, validation = prepare("text", **own, tokeniser="characters", rows="lines", length=4)
    assert (len(train), len(validation)) == (180, 41)
    assert len(read_table(Path("judge.parquet"), "tokens")[0]) == 20
    assert "41 that are held out; 1 of these are equal to a training row" in result.stderr
    step("new", "train.txt", held_out="test.txt", rows="lines", no_estimate=True, quiet=True)
    assert data_of("train")["held_out"] == "test.txt"


def test_tokens(prepare):
    rows = np.arange(60).reshape(20, 3) % 7
    labels = pa.array(["train"] * 15 + ["val"] * 2 + ["test"] * 3).dictionary_encode()
    pq.write_table(pa.table({"tokens": rows.tolist(), "part": labels}), "all.parquet")
    np.save("train.npy", rows[:15])
    np.save("test.npy", rows[15:])
    column, files = {"file": "all.parquet", "split_column": "part"}, {"file": "train.npy"}
    for own in (column, files | {"held_out": "test.npy"}):
        result, train, validation = prepare("tokens", source="tokens", **own, vocabulary_size=7)
        assert np.array_equal(train, rows[:15])
        assert np.array_equal(validation, rows[15:])
        assert "15 rows for training and 5 that are held out; 5 of these" in result.stderr  # 20 rows of 7


def test_images(prepare):
    for folder, count, grey in (("all/train", 6, 10), ("all/val", 2, 100), ("all/test/a", 3, 200)):
        Path(folder).mkdir(parents=True)
        for k in range(count):
            Image.new("L", (4, 4), grey + k).save(f"{folder}/{k}.png")
    for own in ({"folder": "all", "split": "folders"}, {"folder": "all/train", "held_out": "all/test"}):
        settings = Images(source="image_folder", **own)
        _, train, validation = prepare("images", source="image_folder", **own)
        assert train[:, 0].tolist() == [10, 11, 12, 13, 14, 15]
        assert {*validation[:, 0].tolist()} == ({100, 101} if "split" in own else set()) | {200, 201, 202}
        size = source_of(settings).measure(settings)
        assert (size.rows, size.validation_rows) == (len(train), len(validation))
    settings = {"source": "image_folder", "folder": "all", "validation_fraction": 0.5}
    result, train, validation = prepare("images", **settings)
    assert (len(train), len(validation)) == (5, 6)
    assert "all: has the folders test, train, val; `split: folders` keeps them apart" in result.stderr
    Image.new("L", (4, 4)).save("all/x.png")
    with pytest.raises(InputError, match="all: folders: expected train, valid or test, found '' in 1 of 12"):
        source_of(Images(source="image_folder", folder="all", split="folders")).load()
