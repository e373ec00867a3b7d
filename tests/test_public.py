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
NO_COUNT = (*NO_INTEGER, 0)
NO_FILE = (*NO_PATH, "none", "file", "folder")
NO_NAME = (5, "", "mpl", ["mlp"])
CALLS: dict[str, dict] = {  # function -> arguments that are good
    "pair": {"tokens": ROWS, "vocabulary_size": 3},
    "pair_continuous": {"data": POINTS},
    "distill": {"model": "digits", "iterations": 1},
    "load": {"model": "digits"},
    "train": {"data": ROWS * 10, "vocabulary_size": 3, "iterations": 1, "progress": False},
    "read_pairs": {},
    "results": {},
    "transport": {"tokens": ROWS, "vocabulary_size": 3},
    "transport_continuous": {"data": POINTS},
    "write_pairs": {"x0": ROWS, "x1": ROWS, "path": "a.parquet", "vocabulary_size": 3},
}
BAD = {  # argument -> what is bad, for every function or for the one that is named
    **dict.fromkeys(("count", "keys", "steps", "subsets"), NO_COUNT),
    **dict.fromkeys(("iterations", "nfe", "threads"), NO_COUNT[1:]),
    **dict.fromkeys(("tokens", "x0", "x1", "train data"), NO_ROWS),
    **dict.fromkeys(("distillation", "method", "network", "sampler", "taken_as"), NO_NAME),
    **dict.fromkeys(("backend", "noise"), (None, *NO_NAME)),
    "data": NO_POINTS,
    "device": (None, 5, "", "gpu", "meta", "cuda:99"),
    "distill data": NO_FILE[1:],
    "experiment": (*NO_PATH, "none", "file"),
    "folder": (*NO_PATH[1:], "file"),
    "hours": (True, "1", float("nan"), [1], 0, -1, 1e5),
    "labels": (5, "ab", ["a"], [["a"]], {}, ["a"] * 20),
    "model": NO_FILE,
    "options": (5,),
    "path": (*NO_PATH, "a.csv", "folder.parquet", "file/a.parquet"),
    "rows": (5, "ab", (0,), (0, 1, 2), (1, 1), (-1, 1), (0, 3), (0.0, 1.0), (None, 1)),
    "seed": NO_INTEGER,
    "settings": (5, "ab", [1], {"unknown": 1}, {1: 2}),
    "sources": (*NO_ROWS[1:], ROWS[:1]),
    "start": (5, b"a", [], NUL, "none-such", "folder"),
    "tau": (None, True, "0.2", float("nan"), [1], 0, -1, 0.001, 101),
    "temperature": (True, "1", float("nan"), [1], 0, -1, 101),
    "vocabulary_size": (*NO_INTEGER, 1, 2**16 + 1),
}
ARGUMENTS = [
    (name, argument)
    for name in CALLS
    for argument in inspect.signature(getattr(pairflow, name)).parameters
    if argument != "progress"  # for which any value is true or false
]
CASES = []  # each argument with one bad value, so that the values of a type are tried by several functions
for number, (name, argument) in enumerate(ARGUMENTS):
    values = BAD.get(f"{name} {argument}", BAD.get(argument))
    CASES.append((name, argument, values[number % len(values)]))


def test_every_function_has_bad_values():
    offered = (name for name in pairflow.__all__ if isinstance(getattr(pairflow, name), types.FunctionType))
    assert {*offered} == {*CALLS}


@pytest.mark.parametrize(("name", "argument", "value"), CASES, ids=lambda value: ascii(value)[:20])
def test_a_bad_value_is_one_line(tmp_path, monkeypatch, name, argument, value):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    Path("folder/model.json").mkdir(parents=True)
    Path("folder.parquet").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(pairflow.InputError) as error:
        getattr(pairflow, name)(**{**CALLS[name], argument: value})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    assert sorted(tmp_path.rglob("*")) == before


def test_integers_of_numpy_are_integers():
    rows = pairflow.load("zinc250k", device="cpu").sample(np.int64(1), nfe=np.int32(1), seed=np.uint8(0))
    assert np.array_equal(rows, pairflow.load("zinc250k", device="cpu").sample(1, nfe=1))
