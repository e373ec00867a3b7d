"""Tables with intact metadata and pages, and any contents, before every step that reads one.

A step may end well or refuse the table in one line; what can only be wrong must be refused. More cases:

    PAIRFLOW_TABLE_CASES=5000 python -m pytest tests/steps/test_crafted_tables.py
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deadline import within

import pairflow
from pairflow.artifacts import Metadata, read_table, row_column, write_table
from pairflow.artifacts.contents import COLUMNS
from pairflow.config import Experiment, check
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs

CASES = int(os.environ.get("PAIRFLOW_TABLE_CASES", "150"))
SECONDS = 60  # that a step may take, of which none needs five
ROOT = Path("results/crafted")
RUN = {"batch_size": 8, "iterations": 2, "learning_rate": 1e-2}
DISCRETE = {**RUN, "validate_every": 1}
SHARED = {
    "description": "crafted tables",
    "scale": "reduced",
    "network": {"name": "mlp", "width": 8, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 2, "coverage": True},
    "training": DISCRETE,
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1], "samples": 6, "trials": 2}},
}
MOLECULES = [a * "C" + x + b * "C" for a in range(1, 6) for b in range(1, 6) for x in "ON"]
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "tokens": {
        "data": {"source": "tokens", "file": "rows.npy", "vocabulary_size": 5, "validation_fraction": 0.2},
        "distillation": {
            "redi": {**RUN, "pairs": {"count": 8, "steps": 1}},
            "dcd": DISCRETE | {"teacher_every": 1},
        },
        "pairs": {"mine": "mine.parquet"},
        "methods": ["udlm", "pairflow", "pairflow+redi", "pairflow+dcd", "pairs-mine"],
        "correlation": {"sources": 6, "samples": 2, "steps": 1},
    },
    "vectors": {
        "flow": "continuous",
        "data": {"source": "two_moons", "dims": 4, "training_rows": 40, "validation_rows": 12},
        "pairing": {"steps": 2},
        "training": {**RUN, "loss": "velocity"},
        "distillation": {"rf": {**RUN, "pairs": {"count": 8, "steps": 1}}},
        "methods": ["condot", "pairflow", "pairflow+rf"],
    },
    "text": {
        "data": {
            **{"source": "lines.txt", "tokeniser": "characters", "rows": "lines", "length": 12},
            **{"validation_fraction": 0.2, "judge_fraction": 0.1},
        },
        "pairing": {"steps": 2},
        "judge": {"order": 2},
        "methods": ["pairflow"],
    },
    "images": {
        "flow": "continuous",
        "data": {"source": "digits"},
        "pairing": {"steps": 1},
        "training": {**RUN, "loss": "velocity"},
        "features": {"extractor": "classifier", "weights": "digits"},
        "methods": ["pairflow"],
    },
    "molecules": {
        "data": {"source": "library.smi", "length": 16, "validation_fraction": 0.2},
        "methods": ["pairflow"],
    },
}


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
    if harm == "no rows":
        return table.slice(0, 0), f"{name}: {harm}", False
    if harm == "every row twice":
        return pa.concat_tables([table, table]), f"{name}: {harm}", False
    if harm == "rows in another order":
        return table.take(draw.permutation(rows)), f"{name}: {harm}", False
    if harm == "missing":
        return table.drop_columns([name]), f"{name}: {harm}", True
    if harm == "twice":
        return table.append_column(name, column), f"{name}: {harm}", True
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
            shapes: list[Any] = [
                [1, 1, n + 1],
                [-1, -1, n],
                [n],
                "abc",
                [1, "1", n],
                [0, 0, 0],
                [[1], 1, n],
                5,
            ]
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


def _make_sources() -> None:
    """The files that the experiments start from, in the working directory."""
    draw = np.random.default_rng(0)
    rows = np.cumsum(draw.integers(0, 2, (60, 6)), axis=1) % 5
    np.save("rows.npy", rows)
    pairflow.write_pairs(draw.integers(0, 5, rows.shape), rows, "mine.parquet", vocabulary_size=5)
    words = np.array(["sun", "moon", "star"])[draw.integers(3, size=(120, 2))]
    Path("lines.txt").write_text("\n".join(map(" ".join, words)))
    Path("library.smi").write_text("\n".join(MOLECULES))


@pytest.fixture(params=EXPERIMENTS)
def experiment(request, tmp_path, monkeypatch, step, run_job):
    """A finished experiment in the working directory: what it is made of, and its jobs."""
    monkeypatch.chdir(tmp_path)
    _make_sources()
    planned = jobs(ROOT, check(Experiment, SHARED | EXPERIMENTS[request.param], "test"))
    for job in planned:
        run_job(ROOT, job, request.param)
    pairing = next(job for job in planned if job.rule == "pair")
    shards = [Path(f"{number}.parquet") for number in (1, 2)]
    for number, shard in enumerate(shards, start=1):
        options = {"settings": pairing.settings.model_dump(mode="json"), **pairing.inputs}
        assert step("pair", out=shard, shard=f"{number}/2", quiet=True, **options).exit_code == 0
    return request.param, [*planned, Job("gather", {"shards": shards}, pairing.outputs)]


Call = tuple[str, list[Path], dict[str, Any]]  # a step, its files and its options


def commands(modality: str) -> list[tuple[Call, list[Path]]]:
    """What users run besides the jobs of an experiment, and the tables that it reads."""
    model, tables = ROOT / "seed0/models/pairflow", [ROOT / "metrics.parquet", ROOT / "timings.parquet"]
    page, folder = {"out": "elsewhere/page.html"}, {"results": "results", "tables": "elsewhere/tables"}
    values = {"experiments": {ROOT.name: SHARED | EXPERIMENTS[modality]}, "values": "elsewhere/v.parquet"}
    calls: list[tuple[Call, list[Path]]] = [
        (("compare", [ROOT], page), tables),
        (("paper", [], folder | values | page), tables),
    ]
    if modality == "molecules":
        ask = {"model": model, "count": 3, "nfe": 1, "novel": True, "out": "elsewhere/molecules.smi"}
        score = {"model": ROOT, "draws": 2, "out": "elsewhere/scores.csv"}
        calls += [(("sample", [], ask), [model / "known.parquet"])]
        calls += [(("score", [Path("library.smi")], score), tables)]
    return calls


def readers_of(modality: str, planned: list[Job], call_of) -> list[tuple[Call, Path]]:
    """Each step with each table that it reads; of the report's, one in four."""
    readers = [(call, path) for call, tables in commands(modality) for path in tables]
    for job in planned:
        call = call_of(ROOT, replace(job, outputs=elsewhere(job)), modality)
        tables = [path for path in job.needed if path.suffix == ".parquet"]
        readers += [(call, path) for path in (tables[::4] if job.rule == "report" else tables)]
    return readers


@pytest.mark.promise("contents", times=150 // len(EXPERIMENTS))
def test_a_crafted_table_ends_well_or_in_one_line(experiment, call_of, step):
    modality, planned = experiment
    draw = np.random.default_rng(list(modality.encode()))
    readers = readers_of(modality, planned, call_of)
    read_whole: dict[int, bool] = {}

    def run(name: str, files: list[Path], options: dict[str, Any]):
        with within(SECONDS):
            done = step(name, *files, **options)
        shutil.rmtree("elsewhere", ignore_errors=True)
        return done

    mistakes, refusals = [], 0
    for _ in range(CASES // len(EXPERIMENTS)):
        call, path = readers[number := draw.integers(len(readers))]
        crafted = craft(path, draw)
        with in_place_of(path):
            if number not in read_whole:
                break_a_page(path)
                read_whole[number] = run(*call).exit_code == 2
            write_table(path, crafted.table, Metadata(**crafted.facts))
            done = run(*call)
        refusals += done.exit_code == 2
        lines = [line for line in done.stderr.splitlines() if line and "%|" not in line]
        sound = done.exit_code == 0 or (
            done.exit_code == 2 and lines and lines[-1].startswith("pairflow ") and len(lines) == 1
        )
        silent = crafted.wrong and done.exit_code == 0 and read_whole[number]
        if not sound or silent:
            mistakes.append(f"{call[0]} {path}: {crafted.harm}: {done.exit_code} {done.exception!r} {lines}")
    print(f"{modality}: {CASES // len(EXPERIMENTS)} tables of {len(readers)} readers, {refusals} refused")
    assert not mistakes, "\n".join(mistakes)


def elsewhere(job: Job) -> dict[str, Path]:
    return {name: Path("elsewhere") / path for name, path in job.outputs.items()}


def break_a_page(path: Path) -> None:
    """Flip a bit of the first column, which only a reader of the rows notices."""
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content[start + column.total_compressed_size - 1] ^= 2
    path.write_bytes(content)
