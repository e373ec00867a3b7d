"""Tables with intact metadata and pages, and any contents, before every step that reads one.

A step may end well or refuse the table in one line. What has to be refused is in
tests/artifacts/test_contents.py. More cases:

    PAIRFLOW_TABLE_CASES=5000 python -m pytest tests/steps/test_crafted_tables.py
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deadline import within
from miniatures import EXPERIMENTS, SHARED, Call, calls_of, root_of

from pairflow.artifacts import Metadata, read_table, row_column, write_table
from pairflow.artifacts.contents import COLUMNS

CASES = int(os.environ.get("PAIRFLOW_TABLE_CASES", "20"))
SECONDS = 300  # that a step may take, of which none needs ten where the machine has nothing else to do


def with_number(rows: np.ndarray, value: float) -> np.ndarray:
    """The rows with one number in their middle that is this one."""
    real = rows.dtype.kind == "f" or not np.isfinite(value)
    rows = rows.astype(np.float32 if real else np.int32)
    rows[len(rows) // 2, -1] = value
    return rows


def harms_of(column: pa.ChunkedArray) -> dict[str, Any]:
    """What may stand in place of a column with rows."""
    harms = {"all null": pa.nulls(len(column), column.type), "structures": pa.array([{"a": 1}] * len(column))}
    harms["null row"] = pa.array([None, *column.to_pylist()[1:]], column.type)
    harms["lists"] = pa.array([[0] * (row % 9) for row in range(len(column))], pa.list_(pa.int32()))
    if pa.types.is_fixed_size_list(column.type):
        rows = column.combine_chunks().flatten().to_numpy().reshape(len(column), -1)
        changed = {"longer": np.hstack([rows, rows[:, :1]]), "floats": rows.astype(np.float64)}
        changed |= {str(value): with_number(rows, value) for value in (np.nan, -1, 2**16)}
        harms |= {harm: row_column(values) for harm, values in changed.items()}
    return harms


def craft_column(table: pa.Table, kind: str, draw: np.random.Generator) -> tuple[pa.Table, str]:
    """A table of which one column that its kind needs is another."""
    columns = [name for name, column in COLUMNS[kind].items() if not (column.nulls or column.optional)]
    name = str(draw.choice(columns))
    tables = {"no rows": table.slice(0, 0), "every row twice": pa.concat_tables([table, table])}
    tables |= {"missing": table.drop_columns([name]), "twice": table.append_column(name, table[name])}
    if len(table):
        place, harms = table.column_names.index(name), harms_of(table[name])
        tables |= {harm: table.set_column(place, name, values) for harm, values in harms.items()}
    harm = str(draw.choice([*tables]))
    return tables[harm], f"{name}: {harm}"


SIZES = ["8", -1, 0, True, 2.5, 10**12, [3], {"a": 1}]
TEXTS = [3, ["a"], {"a": 1}, True]
MARKS = [-1, "0", True, 10**9, 0.5, [0]]
FACTS = {"length": SIZES, "vocabulary_size": SIZES, "padding": MARKS, "mask": MARKS}
FACTS |= {"split": TEXTS, "data": TEXTS, "vocabulary": TEXTS, "kind": [["tokens"], None, 3, "nothing"]}
FACTS |= {"shape": [[-1, -1, 4], "abc", [1, "1", 4], [[1], 1, 4], 5], "inputs": [[1], "a", {"model": 3}]}
FACTS |= {"parameters": [[1], "a", None, 7]}


def craft_facts(facts: dict[str, Any], draw: np.random.Generator) -> tuple[dict, str]:
    """Metadata of which one is another, or another parameter."""
    name = str(draw.choice([*FACTS]))
    value = FACTS[name][draw.integers(len(FACTS[name]))]
    if name == "parameters" and facts[name] and draw.random() < 0.8:
        key = str(draw.choice(sorted(facts[name])))
        value = {**facts[name], key: SIZES[draw.integers(len(SIZES))]}
    return {**facts, name: value}, f"{name}: {value!r:.80}"


def craft(path: Path, draw: np.random.Generator) -> str:
    """Write another table in place of a sound one; what is wrong with it."""
    table, metadata = read_table(path)
    facts = dict(vars(metadata))
    if draw.random() < 0.65 and metadata.kind in COLUMNS:
        table, harm = craft_column(table, metadata.kind, draw)
    else:
        facts, harm = craft_facts(facts, draw)
    write_table(path, table, Metadata(**facts))
    return harm


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
    readers, mistakes, refusals = readers_of(kind), [], 0
    for _ in range(CASES // len(EXPERIMENTS)):
        call, path = readers[draw.integers(len(readers))]
        with in_place_of(path):
            harm = craft(path, draw)
            with within(SECONDS):
                done = step(call.name, *call.arguments, **call.options)
        shutil.rmtree("elsewhere", ignore_errors=True)
        lines = [line for line in done.stderr.splitlines() if line and "%|" not in line]
        refused = done.exit_code == 2 and len(lines) == 1 and lines[0].startswith("pairflow ")
        refusals += refused
        if not refused and done.exit_code:
            mistakes.append(f"{call.name} {path}: {harm}: {done.exit_code} {done.exception!r} {lines}")
    assert not mistakes, "\n".join(mistakes)
    assert refusals
