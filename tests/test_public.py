"""What `pairflow` offers in Python refuses every bad value of every argument in one line."""

import inspect
import types
from pathlib import Path

import numpy as np
import pytest

import pairflow

LONG, NUL = "x" * 300, "a\0b"
NO_INTEGER = (None, True, "2", 2.5, float("nan"), [2], -1, 2**64)
NO_PATH = (None, 5, b"a", [], "", NUL, LONG, f"{LONG}/a", "a\ud800")
ROWS = [[0, 1, 2], [2, 1, 0]]
NO_ROWS = (None, 5, "ab", [0, 1], [[0, 1], [2]], [["a"]], [[0.5]], [[3]], [[-1]], [[]], {}, [[None]])
POINTS = [[0.5, 1.0], [2.0, 3.0]]
NO_POINTS = (None, 5, "ab", [0.5], [[0.5], [1.0, 2.0]], [["a"]], [[float("nan")]], [[1e13]], [[]], {}, [[1j]])
NO_DEVICE = (None, 5, "", "gpu", "meta", "cpu:x", "auto:1", "cpu:-1", "cuda:99", "cuda:x", NUL)
NO_MACHINE = (None, 5, "", "gpu", "meta", "cuda:99", ["cpu"])
NO_RANGE = (5, "ab", (0,), (0, 1, 2), (1, 1), (-1, 1), (0, 3), (0.0, 1.0), (None, 1))
NO_TAU = (None, True, "0.2", float("nan"), [1], 0, -1, 0.001, 101)
CALLS = {  # function -> arguments that are good, and for each what is bad
    "pair": (
        {"tokens": ROWS, "vocabulary_size": 3},
        {
            "tokens": NO_ROWS,
            "vocabulary_size": (*NO_INTEGER, 1, 2**16 + 1),
            "steps": (*NO_INTEGER, 0),
            "subsets": (*NO_INTEGER, 0, 3),
            "keys": (*NO_INTEGER, 0),
            "noise": (None, 5, "", "frequency", ["uniform"]),
            "seed": NO_INTEGER,
            "rows": NO_RANGE,
            "backend": (None, 5, "", "gpus", ["cpu"]),
            "threads": (*NO_INTEGER[1:], 0),
        },
    ),
    "pair_continuous": (
        {"data": POINTS},
        {
            "data": NO_POINTS,
            "steps": (*NO_INTEGER, 0),
            "seed": NO_INTEGER,
            "device": NO_DEVICE,
            "rows": NO_RANGE,
        },
    ),
    "distill": (
        {"model": "digits", "iterations": 1},
        {
            "model": (*NO_PATH, "none", "file", "folder"),
            "distillation": (None, 5, "", "dcdd", ["dcd"]),
            "iterations": (*NO_INTEGER[1:], 0),
            "settings": (5, "ab", [1], {"unknown": 1}, {1: 2}),
            "data": (*NO_PATH[1:], "none", "file", "folder"),
            "folder": (*NO_PATH[1:], "file"),
            "threads": (*NO_INTEGER[1:], 0),
            "device": NO_MACHINE,
        },
    ),
    "load": (
        {"model": "digits"},
        {
            "model": (*NO_PATH, "none", "file", "folder"),
            "network": (5, "", int, {}, ["mlp"]),
            "device": NO_MACHINE,
        },
    ),
    "train": (
        {"data": ROWS * 10, "vocabulary_size": 3, "iterations": 1, "progress": False},
        {
            "data": (*NO_ROWS, "none", NUL, ["C", 5]),
            "vocabulary_size": (*NO_INTEGER, 1, 2**16 + 1),
            "method": (5, "", "pairfow", ["udlm"], "condot"),
            "network": (5, "", "mpl", int, {}, ["mlp"], {"name": "mlp", "width": 1}),
            "sources": (*NO_ROWS[1:], ROWS[:1]),
            "labels": (5, "ab", ["a"], [["a"]], {}, ["a"] * 20),
            "hours": (True, "1", float("nan"), [1], 0, -1, 1e5),
            "iterations": (*NO_INTEGER[1:], 0),
            "seed": NO_INTEGER,
            "folder": (*NO_PATH[1:], "file"),
            "start": (5, b"a", [], NUL, "none-such", "folder"),
            "settings": (5, "ab", [1], {"training": 5}, {"unknown": 1}, {1: 2}),
            "taken_as": (5, "", "rowss", ["rows"]),
            "device": NO_MACHINE,
            "threads": (*NO_INTEGER[1:], 0),
            "options": (5,),
        },
    ),
    "read_pairs": ({}, {"path": (*NO_PATH, "none", "file", "folder", "folder.parquet")}),
    "results": ({}, {"experiment": (*NO_PATH, "none", "file")}),
    "sample": (
        {"model": "zinc250k", "count": 1, "nfe": 1},
        {
            "model": (*NO_PATH, "none", "file", "folder"),
            "count": (*NO_INTEGER, 0),
            "nfe": (*NO_INTEGER[1:], 0),
            "seed": NO_INTEGER,
            "sampler": (5, "", "eular", ["euler"]),
            "temperature": (True, "1", float("nan"), [1], 0, -1, 101),
            "device": NO_MACHINE,
        },
    ),
    "transport": (
        {"tokens": ROWS, "vocabulary_size": 3},
        {
            "tokens": (*NO_ROWS, ROWS[:1]),
            "vocabulary_size": (*NO_INTEGER, 1, 2**16 + 1),
            "tau": NO_TAU,
            "noise": (None, 5, "", "frequency", ["uniform"]),
            "seed": NO_INTEGER,
            "threads": (*NO_INTEGER[1:], 0),
            "device": NO_DEVICE,
        },
    ),
    "transport_continuous": (
        {"data": POINTS},
        {"data": (*NO_POINTS, POINTS[:1]), "tau": NO_TAU, "seed": NO_INTEGER, "device": NO_DEVICE},
    ),
    "write_pairs": (
        {"x0": ROWS, "x1": ROWS, "path": "a.parquet", "vocabulary_size": 3},
        {
            "x0": NO_ROWS,
            "x1": (*NO_ROWS, ROWS[:1]),
            "path": (*NO_PATH, "a.csv", f"{LONG}.parquet", "folder.parquet", "file/a.parquet"),
            "vocabulary_size": (*NO_INTEGER, 1, 2**16 + 1),
        },
    ),
}
FLAGS = {"progress"}  # any value is true or false


def test_every_argument_of_every_function_has_bad_values():
    functions = {
        name: value
        for name in pairflow.__all__
        if isinstance(value := getattr(pairflow, name), types.FunctionType)
    }
    assert set(functions) == set(CALLS)
    for name, function in functions.items():
        assert set(inspect.signature(function).parameters) <= {*CALLS[name][1], *FLAGS}


ARGUMENTS = [(name, *argument) for name, (_, bad) in CALLS.items() for argument in bad.items()]
BAD = [(name, argument, values[n % len(values)]) for n, (name, argument, values) in enumerate(ARGUMENTS)]


@pytest.mark.parametrize(("name", "argument", "value"), BAD, ids=lambda value: ascii(value)[:20])
def test_a_bad_value_is_one_line(tmp_path, monkeypatch, name, argument, value):
    """Each argument with one bad value, so that all values of a type are tried by some function."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    Path("folder/model.json").mkdir(parents=True)
    Path("folder.parquet").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(pairflow.InputError) as error:
        getattr(pairflow, name)(**{**CALLS[name][0], argument: value})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    assert sorted(tmp_path.rglob("*")) == before


def test_integers_of_numpy_are_integers():
    rows = pairflow.sample("zinc250k", np.int64(1), nfe=np.int32(1), seed=np.uint8(0), device="cpu")
    assert np.array_equal(rows, pairflow.sample("zinc250k", 1, nfe=1, device="cpu"))
