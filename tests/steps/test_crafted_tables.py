"""Tables with intact metadata and pages, and any contents, before every step that reads one.

A step may end well or refuse the table in one line; what can only be wrong must be refused. More cases:

    PAIRFLOW_TABLE_CASES=5000 python -m pytest tests/steps/test_crafted_tables.py
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deadline import within
from miniatures import EXPERIMENTS, SHARED, Call, calls_of, root_of

from pairflow.artifacts import Metadata, read_table, row_column, write_table
from pairflow.artifacts.contents import COLUMNS

CASES = int(os.environ.get("PAIRFLOW_TABLE_CASES", "20"))
Harm = Callable[[pa.ChunkedArray, np.random.Generator], tuple[Any, bool]]
SECONDS = 300  # that a step may take, of which none needs ten where the machine has nothing else to do


@dataclass(frozen=True)
class Case:
    """A table to write: whether it can only be wrong, and in what."""

    table: pa.Table
    facts: dict[str, Any]
    harm: str
    wrong: bool


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return column.combine_chunks().flatten().to_numpy().reshape(len(column), -1).copy()


def lists(column: pa.ChunkedArray, draw: np.random.Generator) -> tuple[Any, bool]:
    return pa.array([[0] * int(n) for n in draw.integers(0, 9, len(column))], pa.list_(pa.int32())), True


def nulls(column: pa.ChunkedArray, draw: np.random.Generator) -> tuple[Any, bool]:
    kept = np.arange(len(column)) != draw.integers(len(column))
    values = [one if keep else None for keep, one in zip(kept, column.to_pylist(), strict=True)]
    return pa.array(values, column.type), True


def wider(column: pa.ChunkedArray, draw: np.random.Generator) -> tuple[Any, bool]:
    numbers = _numbers(column)
    return row_column(np.hstack([numbers, numbers[:, :1]])), True


def strings(column: pa.ChunkedArray, draw: np.random.Generator) -> tuple[Any, bool]:
    numbers = _numbers(column)
    return pa.array([list(map(str, row)) for row in numbers], pa.list_(pa.string(), numbers.shape[1])), True


def floats(column: pa.ChunkedArray, draw: np.random.Generator) -> tuple[Any, bool]:
    numbers = _numbers(column)
    return row_column(numbers.astype(np.float64)), numbers.dtype.kind != "f"


def number(value: float) -> Harm:
    """One number of the column is this one; only a real number may be negative, or large."""

    def changed(column: pa.ChunkedArray, draw: np.random.Generator) -> tuple[Any, bool]:
        numbers = _numbers(column)
        real = numbers.dtype.kind == "f"
        if not real:
            numbers = numbers.astype(np.int32 if np.isfinite(value) else np.float32)
        numbers[draw.integers(len(numbers)), draw.integers(numbers.shape[1])] = value
        return row_column(numbers), not (real and np.isfinite(value))

    return changed


HARMS: dict[str, Harm] = {
    "lists of several lengths": lists,
    "null row": nulls,
    "all null": lambda column, draw: (pa.nulls(len(column), column.type), True),
    "structures": lambda column, draw: (pa.array([{"a": 1}] * len(column)), True),
}
ROW_HARMS: dict[str, Harm] = {"longer": wider, "strings": strings, "floats": floats, "NaN": number(np.nan)}
ROW_HARMS |= {"negative": number(-1), "token of K or more": number(2**16)}


def craft_column(table: pa.Table, kind: str, draw: np.random.Generator) -> tuple[pa.Table, str, bool]:
    """A table of which one column that its kind needs is another."""
    columns = [name for name, column in COLUMNS[kind].items() if not (column.nulls or column.optional)]
    name = str(draw.choice(columns))
    whole = {
        "no rows": (table.slice(0, 0), False),
        "every row twice": (pa.concat_tables([table, table]), False),
        "missing": (table.drop_columns([name]), True),
        "twice": (table.append_column(name, table[name]), True),
    }
    harms = HARMS | (ROW_HARMS if pa.types.is_fixed_size_list(table[name].type) else {})
    harm = str(draw.choice([*whole, *(harms if len(table) else ())]))
    if harm in whole:
        return whole[harm][0], f"{name}: {harm}", whole[harm][1]
    changed, wrong = harms[harm](table[name], draw)
    return table.set_column(table.column_names.index(name), name, changed), f"{name}: {harm}", wrong


SIZES = ["8", -1, 0, True, 2.5, 10**12, [3], {"a": 1}]
TEXTS = [3, ["a"], {"a": 1}, True]
MARKS = [-1, "0", True, 10**9, 0.5, [0]]
FACTS = {"length": SIZES, "vocabulary_size": SIZES, "padding": MARKS, "mask": MARKS}
FACTS |= {"split": TEXTS, "data": TEXTS, "vocabulary": TEXTS, "kind": [["tokens"], None, 3, "nothing"]}
FACTS |= {"shape": [[-1, -1, 4], "abc", [1, "1", 4], [[1], 1, 4], 5], "inputs": [[1], "a", {"model": 3}]}
FACTS |= {"parameters": [[1], "a", None, 7]}


def craft_facts(facts: dict[str, Any], draw: np.random.Generator) -> tuple[dict, str, bool]:
    """Metadata of which one is another; another value of a parameter may be sound."""
    name = str(draw.choice([*FACTS]))
    value, wrong = FACTS[name][draw.integers(len(FACTS[name]))], True
    if name == "parameters" and facts[name] and draw.random() < 0.8:
        key = str(draw.choice(sorted(facts[name])))
        value, wrong = {**facts[name], key: SIZES[draw.integers(len(SIZES))]}, False
    return {**facts, name: value}, f"{name}: {value!r:.80}", wrong


def craft(path: Path, draw: np.random.Generator) -> Case:
    """Another table in place of a sound one."""
    table, metadata = read_table(path)
    facts = dict(metadata.__dict__)
    if draw.random() < 0.65 and metadata.kind in COLUMNS:
        table, harm, wrong = craft_column(table, metadata.kind, draw)
    else:
        facts, harm, wrong = craft_facts(facts, draw)
    return Case(table, facts, harm, wrong)


@contextlib.contextmanager
def in_place_of(path: Path) -> Iterator[None]:
    """A file to write over for a moment."""
    content = path.read_bytes()
    try:
        yield
    finally:
        path.write_bytes(content)


@pytest.fixture(params=EXPERIMENTS)
def kind(request, tmp_path, monkeypatch, finish):
    """A kind of data, whose finished experiment is in the working directory."""
    shutil.copytree(finish(request.param), tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return request.param


def readers_of(kind: str) -> list[tuple[Call, Path]]:
    """Each command with each table that it reads; of the report's, one in four."""
    root = root_of(kind)
    values = {"experiments": {kind: SHARED | EXPERIMENTS[kind]}, "values": "elsewhere/values.parquet"}
    values |= {"results": "results", "tables": "elsewhere/tables", "out": "elsewhere/page.html"}
    paper = Call("paper", [], values, [], [root / "metrics.parquet", root / "timings.parquet"])
    readers = []
    for call in [*calls_of(kind), paper]:
        tables = [path for path in call.inputs if path.suffix == ".parquet"]
        moved = call.moved("elsewhere")
        readers += [(moved, path) for path in (tables[::4] if call.name == "report" else tables)]
    return readers


@pytest.mark.promise("contents", times=CASES // len(EXPERIMENTS))
def test_a_crafted_table_ends_well_or_in_one_line(kind, step):
    draw = np.random.default_rng(list(kind.encode()))
    readers = readers_of(kind)
    read_whole: dict[int, bool] = {}

    def run(call: Call):
        with within(SECONDS):
            done = step(call.name, *call.arguments, **call.options)
        shutil.rmtree("elsewhere", ignore_errors=True)
        return done

    mistakes, refusals = [], 0
    for _ in range(CASES // len(EXPERIMENTS)):
        call, path = readers[number := draw.integers(len(readers))]
        crafted = craft(path, draw)
        with in_place_of(path):
            if number not in read_whole:
                break_a_page(path)
                read_whole[number] = run(call).exit_code == 2
            write_table(path, crafted.table, Metadata(**crafted.facts))
            done = run(call)
        refusals += done.exit_code == 2
        lines = [line for line in done.stderr.splitlines() if line and "%|" not in line]
        sound = done.exit_code == 0 or (
            done.exit_code == 2 and lines and lines[-1].startswith("pairflow ") and len(lines) == 1
        )
        silent = crafted.wrong and done.exit_code == 0 and read_whole[number]
        if not sound or silent:
            mistakes.append(
                f"{call.name} {path}: {crafted.harm}: {done.exit_code} {done.exception!r} {lines}"
            )
    print(f"{kind}: {CASES // len(EXPERIMENTS)} tables of {len(readers)} readers, {refusals} refused")
    assert not mistakes, "\n".join(mistakes)


def break_a_page(path: Path) -> None:
    """Flip a bit of the first column, which only a reader of the rows notices."""
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content[start + column.total_compressed_size - 1] ^= 2
    path.write_bytes(content)
