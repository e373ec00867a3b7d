"""Tables with intact metadata and pages, and any contents, before every step that reads one.

A step may end well or refuse the table in one line; what can only be wrong must be refused. More cases:

    PAIRFLOW_TABLE_CASES=5000 python -m pytest tests/steps/test_crafted_tables.py
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
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

CASES = int(os.environ.get("PAIRFLOW_TABLE_CASES", "60"))
SECONDS = 300  # that a step may take, of which none needs ten where the machine has nothing else to do


@dataclass(frozen=True)
class Case:
    """A table to write: whether it can only be wrong, and in what."""

    table: pa.Table
    facts: dict[str, Any]
    harm: str
    wrong: bool


def _rows(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if pa.types.is_fixed_size_list(table[name].type)]


def _with(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return column.combine_chunks().flatten().to_numpy().reshape(len(column), -1).copy()


def craft_column(table: pa.Table, kind: str, draw: np.random.Generator) -> tuple[pa.Table, str, bool]:
    """A table of which one column that its kind needs is another."""
    columns = [name for name, column in COLUMNS[kind].items() if not (column.nulls or column.optional)]
    name = str(draw.choice(columns))
    column, rows = table[name], len(table)
    harms = ["missing", "twice", "lists of several lengths", "lists of one length", "null row", "all null"]
    harms += ["structures", "booleans", "no rows", "every row twice", "rows in another order"]
    if pa.types.is_fixed_size_list(column.type):
        harms += 2 * ["null number", "shorter", "longer", "strings", "floats", "NaN", "infinite", "negative"]
        harms += 2 * ["token of K or more", "as int64", "zero width"]
    harm = str(draw.choice(harms))
    row = int(draw.integers(max(1, rows)))
    whole = {
        "no rows": lambda: (table.slice(0, 0), False),
        "every row twice": lambda: (pa.concat_tables([table, table]), False),
        "rows in another order": lambda: (table.take(draw.permutation(rows)), False),
        "missing": lambda: (table.drop_columns([name]), True),
        "twice": lambda: (table.append_column(name, column), True),
    }
    if harm in whole:
        crafted, wrong = whole[harm]()
        return crafted, f"{name}: {harm}", wrong
    if not rows:
        return table, "as it was", False
    changed, wrong = craft_values(column, harm, row, draw)
    return _with(table, name, changed), f"{name}: {harm}", wrong


def craft_values(column: pa.ChunkedArray, harm: str, row: int, draw: np.random.Generator) -> tuple[Any, bool]:
    rows = len(column)
    match harm:
        case "lists of several lengths":
            return pa.array([[0] * int(n) for n in draw.integers(0, 9, rows)], pa.list_(pa.int32())), rows > 0
        case "lists of one length":
            return pa.array([[0, 1]] * rows, pa.list_(pa.uint8())), True
        case "null row":
            mask = np.arange(rows) == row
            return pa.array(
                [None if m else v for m, v in zip(mask, column.to_pylist(), strict=True)], column.type
            ), True
        case "all null":
            return pa.nulls(rows, column.type), True
        case "structures":
            return pa.array([{"a": 1}] * rows), True
        case "booleans":
            return pa.array([True] * rows), True
    numbers = _numbers(column)
    real = numbers.dtype.kind == "f"
    position = int(draw.integers(numbers.shape[1]))
    match harm:
        case "null number":
            lists = numbers.tolist()
            lists[row][position] = None
            return pa.array(lists, column.type), True
        case "shorter" | "longer":
            wide = numbers[:, :-1] if harm == "shorter" else np.hstack([numbers, numbers[:, :1]])
            return row_column(np.ascontiguousarray(wide)), True
        case "zero width":
            return pa.array([[]] * rows, pa.list_(column.type.value_type, 0)), True
        case "strings":
            return pa.array(
                [list(map(str, one)) for one in numbers], pa.list_(pa.string(), numbers.shape[1])
            ), True
        case "floats":
            return row_column(numbers.astype(np.float64)), not real
        case "as int64":
            return row_column(numbers.astype(np.int64)), real
    value = {"NaN": np.nan, "infinite": -np.inf, "negative": -1, "token of K or more": 2**16}[harm]
    if not real:
        numbers = numbers.astype(np.float32 if harm in ("NaN", "infinite") else np.int32)
    numbers[row, position] = value
    return row_column(numbers), not real or harm in ("NaN", "infinite")


SIZES = ["8", None, -1, 0, True, 2.5, 10**12, [3], {"a": 1}]


def craft_facts(facts: dict[str, Any], rows: bool, draw: np.random.Generator) -> tuple[dict, str, bool]:
    """Metadata of which one is another; `rows` where the kind has tokens or vectors."""
    name = str(draw.choice(["length", "vocabulary_size", "shape", "padding", "mask", "parameters", "inputs",
                            "kind", "split", "data", "vocabulary"]))  # fmt: skip
    value: Any
    wrong = True
    match name:
        case "length" | "vocabulary_size":
            value = SIZES[draw.integers(len(SIZES))]
            if value is None:
                wrong = rows and (name == "length" or facts["vocabulary_size"] is not None)
            if draw.random() < 0.3 and facts[name]:
                value, wrong = facts[name] + 1, name == "length" and rows
        case "shape":
            n = facts["length"] or 4
            shapes = [[1, 1, n + 1], [-1, -1, n], [n], "abc", [1, "1", n], [0, 0, 0], [[1], 1, n], 5]
            value = shapes[draw.integers(len(shapes))]
        case "padding" | "mask":
            k = facts["vocabulary_size"] or 0
            value = [k, -1, "0", True, 10**9, 0.5, [0]][draw.integers(7)]
        case "parameters":
            value, wrong = craft_parameters(facts["parameters"], draw)
        case "inputs":
            value = [[1], "a", {"model": 3}, {"tokens": None}, None][draw.integers(5)]
        case "kind":
            value = [["tokens"], None, 3, {"a": 1}, "nothing"][draw.integers(5)]
        case _:
            value = [3, ["a"], {"a": 1}, True][draw.integers(4)]
    return {**facts, name: value}, f"{name}: {value!r:.80}", wrong


def craft_parameters(parameters: dict[str, Any], draw: np.random.Generator) -> tuple[Any, bool]:
    """Other parameters; those that are no mapping can only be wrong."""
    if draw.random() < 0.2 or not parameters:
        return [[1], "a", None, 7][draw.integers(4)], True
    name = str(draw.choice(sorted(parameters)))
    if draw.random() < 0.3:
        return {key: value for key, value in parameters.items() if key != name}, False
    return {**parameters, name: SIZES[draw.integers(len(SIZES))]}, False


def craft(path: Path, draw: np.random.Generator) -> Case:
    """Another table in place of a sound one."""
    table, metadata = read_table(path)
    facts = dict(metadata.__dict__)
    if draw.random() < 0.65 and metadata.kind in COLUMNS:
        table, harm, wrong = craft_column(table, metadata.kind, draw)
    else:
        facts, harm, wrong = craft_facts(facts, bool(set(_rows(table)) & {"tokens", "values", "x0"}), draw)
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
