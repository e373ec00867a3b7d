"""A small experiment on each kind of data, the files it starts from, and the commands that make its results.

`finish` of conftest.py runs all of its commands once for all tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import pairflow
from pairflow.config import Experiment, check
from pairflow.plan import calls
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs

RUN = {"batch_size": 16, "iterations": 40, "learning_rate": 1e-2}
SHORT = RUN | {"iterations": 4}
DISCRETE = RUN | {"validate_every": 20}
CONTINUOUS = RUN | {"loss": "velocity"}
MAIN = {"nfe": [1, 2], "samples": 30, "trials": 2}
SHARED = {
    "description": "a small experiment",
    "scale": "reduced",
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 3},
    "training": DISCRETE,
    "evaluations": {"main": MAIN},
}
K, N, ROWS = 5, 6, 200  # of the token rows
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "tokens": {
        "data": {"source": "tokens", "file": "rows.npy", "vocabulary_size": K, "validation_fraction": 0.2},
        "pairing": {"steps": 3, "coverage": True},
        "distillation": {
            "redi": {**SHORT, "pairs": {"count": 8, "steps": 1}},
            "dcd": {**SHORT, "validate_every": 2, "teacher_every": 2},
        },
        "pairs": {"mine": "mine.parquet"},
        "methods": ["udlm", "pairflow", "pairflow+dcd", "pairflow+redi", "sdot", "pairs-mine"],
        "correlation": {"sources": 6, "samples": 2, "steps": 1, "methods": ["udlm"]},
    },
    "vectors": {
        "flow": "continuous",
        "data": {"source": "two_moons", "dims": 4, "training_rows": 300, "validation_rows": 60},
        "pairing": {"steps": 20},
        "training": CONTINUOUS,
        "distillation": {"rf": {**SHORT, "pairs": {"count": 70, "steps": 3}}},
        "methods": ["condot", "ot", "pairflow", "pairflow+rf", "sdot"],
        "evaluations": {"main": {**MAIN, "trials": 3}},
    },
    "text": {
        "data": {
            **{"source": "lines.txt", "tokeniser": "characters", "rows": "lines", "length": 12},
            **{"validation_fraction": 0.2, "judge_fraction": 0.1},
        },
        "training": {**DISCRETE, "ignore_padding": True},
        "methods": ["udlm", "pairflow"],
        "evaluations": {"main": {**MAIN, "temperatures": [0.5]}},
        "judge": {"order": 3},
    },
    "images": {
        "flow": "continuous",
        "data": {"source": "digits"},
        "training": CONTINUOUS | {"iterations": 4},
        "features": {"extractor": "classifier", "weights": "digits"},
        "methods": ["condot", "pairflow"],
    },
    "molecules": {
        "data": {"source": "library.smi", "length": 16, "validation_fraction": 0.2},
        "methods": ["pairflow"],
    },
}
MOLECULES = [a * "C" + x + b * "C" for a in range(1, 6) for b in range(1, 6) for x in "ON"]
SOURCES = np.random.default_rng(1).integers(0, K, (ROWS, N))


def token_rows() -> np.ndarray:
    """Rows in which each token is the one before, or the next symbol."""
    steps = np.random.default_rng(0).integers(0, 2, (ROWS, N))
    return np.cumsum(steps, axis=1) % K


def make_sources() -> None:
    """The files that the experiments start from, in the working directory."""
    np.save("rows.npy", token_rows())
    pairflow.write_pairs(SOURCES, token_rows(), "mine.parquet", vocabulary_size=K)
    words = np.array(["sun", "moon", "star"])[np.random.default_rng(0).integers(3, size=(300, 2))]
    Path("lines.txt").write_text("\n".join([*map(" ".join, words), "a line that is far too long"]))
    Path("library.smi").write_text("\n".join(MOLECULES))


def data_files(folder: Path | str) -> dict[str, Path]:
    """What preprocessing molecules writes into a folder."""
    names = ("train", "validation", "smiles", "known", "rejected")
    tables = {name: Path(folder, f"{name}.parquet") for name in names}
    return {**tables, "vocabulary": Path(folder, "vocabulary.json")}


def experiment(kind: str, **changes: Any) -> Experiment:
    return check(Experiment, SHARED | EXPERIMENTS[kind] | changes, "test")


def root_of(kind: str) -> Path:
    """The folder of results, in the folder of the sources."""
    return Path("results", kind)


NEVER_QUIET = ("diagnose", "report", "gather", "compare", "adopt", "paper")  # without --quiet


@dataclass(frozen=True)
class Call(calls.Call):
    """A command of `pairflow`, and the paths in it that it reads and writes."""

    outputs: list[Path]
    inputs: list[Path] = field(default_factory=list)

    def words(self, **changes: object) -> list[str]:
        quiet = {} if self.name in NEVER_QUIET else {"quiet": True}
        return super().words(**quiet | changes)

    def moved(self, folder: str) -> "Call":
        """The same command whose outputs lie in another folder."""
        paths = {str(path): Path(folder) / path for path in self.outputs}
        options = {name: paths.get(str(value), value) for name, value in self.options.items()}
        return replace(self, options=options, outputs=[*paths.values()])


def call_of(root: Path, job: Job, kind: str) -> Call:
    """The command that does a job of the plan of an experiment in `root`, as its rule runs it."""
    call = calls.call_of(root, job, kind)
    return Call(call.name, call.arguments, call.options, [*job.outputs.values()], job.needed)


def calls_of(kind: str) -> list[Call]:
    """The commands of all jobs of an experiment in their order, and then commands that no rule runs."""
    planned = jobs(root_of(kind), experiment(kind))
    return [*(call_of(root_of(kind), job, kind) for job in planned), *_by_hand(kind)]


def _by_hand(kind: str) -> Iterator[Call]:
    root, out = root_of(kind), root_of(kind) / "by_hand"

    def call(name: str, file: str, inputs: list[Path], *files: object, **options: object) -> Call:
        return Call(name, [*files], {**options, "out": out / file}, [out / file], inputs)

    tables = [root / "metrics.parquet", root / "timings.parquet"]
    model, tokens = root / "seed0/models/pairflow", root / "data/train.parquet"
    if kind in ("tokens", "vectors"):
        pairing = experiment(kind).pair_settings("pairflow", 0).model_dump(mode="json")
        shards = [out / f"{number}.parquet" for number in (1, 2)]
        for number, shard in enumerate(shards, start=1):
            options = {"settings": pairing, "tokens": tokens, "shard": f"{number}/2"}
            yield call("pair", shard.name, [tokens], **options)
        yield call("gather", "gathered.parquet", shards, *shards)
    if kind == "tokens":
        yield call("compare", "comparison.html", tables, root)
    if kind == "molecules":
        count = {"count": 3, "nfe": 1, "novel": True}
        yield call("sample", "molecules.smi", [model / "known.parquet"], model=model, **count)
        yield call("score", "scores.csv", tables, "library.smi", model=root, draws=2)
        smiles = root / "data/smiles.parquet"
        yield call("norms", "norms.parquet", [smiles], smiles=smiles)
        yield call("metrics", "metrics.html", [], "library.smi", reference="library.smi")
