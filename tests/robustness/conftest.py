"""A miniature experiment with names that are attacks, made step by step, by steps that start at once."""

import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from miniatures import Call, call_of
from torch_threads import threads_restored

from pairflow.cli import main
from pairflow.config import Experiment, check
from pairflow.plan.jobs import jobs

NASTY = "mini wörk $(touch pwned) 'ß' ; & \"q\""  # a folder's name that no shell may see unquoted
LIBRARY = "../lib $(touch pwned);'é' `touch pwned`.smi"  # likewise a file's
ROOT = Path("results/mini")
EXPERIMENT = {
    "description": "<script>alert('pwned')</script> $(touch pwned) \"; touch pwned\n../..",
    "scale": "reduced",
    "data": {"source": LIBRARY, "length": 16, "max_too_long_share": 0.5, "validation_fraction": 0.2},
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 3, "coverage": True},
    "training": {"batch_size": 8, "iterations": 300, "learning_rate": 0.01, "validate_every": 150},
    "distillation": {"dcd": {"batch_size": 8, "iterations": 1, "learning_rate": 0.01, "teacher_every": 1}},
    "methods": ["pairflow"],
    "evaluations": {"main": {"nfe": [1], "samples": 4, "trials": 150}},
}
ENDS = ("", "F", "N")
ROWS = [a * "C" + x + b * "C" + y for a in range(1, 6) for b in range(1, 6) for x in "ON" for y in ENDS]
ROWS += ["<script>alert('pwned')</script> x", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '"]
ROWS += ["../../C", "C <script>alert('pwned')</script>", "CC ../../../etc/passwd", "CCCC $(touch pwned)"]


@dataclass
class Place:
    """A working directory, and the commands that are run in it by their names."""

    folder: Path
    calls: dict[str, Call]
    fork: Any
    experiment: Experiment | None = None

    @property
    def root(self) -> Path:
        return self.folder / ROOT

    @property
    def chain(self) -> list[str]:
        """The steps before the report, in their order."""
        return [name for name in self.calls if name not in ("report", "distill")]

    def outputs(self, name: str) -> list[Path]:
        """The files that a step writes, its record of costs and its figures aside."""
        return [self.folder / path for path in self.calls[name].outputs if path.name != "figures"]

    def require_same(self, name: str, other: "Place") -> None:
        """Assert that a step's outputs have the bytes that they have in the other place."""
        for mine, theirs in zip(self.outputs(name), other.outputs(name), strict=True):
            assert mine.name == "log.parquet" or mine.read_bytes() == theirs.read_bytes()  # a log has times

    def run(self, name: str, **changes: object) -> int:
        """Run a step in this process and in this place, some of its options changed; its exit code."""
        with contextlib.chdir(self.folder), threads_restored(), pytest.raises(SystemExit) as end:
            main(self.calls[name].words(**changes))
        return end.value.code

    def start(self, name: str, **more: object):
        """The step as a process of its own, with a block for each row of a pairing."""
        return self.fork(self.calls[name].words(**more), self.folder, self.folder / "errors.txt", block=1)

    def finish(self, name: str, **more: object) -> float:
        """Run a step to its end; the seconds that it took."""
        started = time.monotonic()
        process = self.start(name, **more)
        process.join()
        assert process.exitcode == 0, self.errors()
        return time.monotonic() - started

    def errors(self) -> str:
        return (self.folder / "errors.txt").read_text()


@pytest.fixture(scope="session")
def place_in(fork):
    """The miniature's working directory in a folder, with the library beside it."""

    def make(folder: Path, **changes: object) -> Place:
        experiment = check(Experiment, EXPERIMENT | changes, "test")
        calls = {job.rule: call_of(ROOT, job, "molecules") for job in jobs(ROOT, experiment)}
        distilled = experiment.model_copy(update={"methods": ("pairflow+dcd",)})
        [distill] = [job for job in jobs(ROOT, distilled) if job.rule == "distill"]
        calls["distill"] = call_of(ROOT, distill, "molecules")
        (folder / NASTY).mkdir(parents=True, exist_ok=True)
        (folder / NASTY / LIBRARY).write_text("\n".join(ROWS) + "\n")
        return Place(folder / NASTY, calls, fork, experiment)

    return make


@pytest.fixture(scope="session")
def place(tmp_path_factory, place_in):
    """Make a working directory, in which nothing has run."""
    return lambda name, **changes: place_in(tmp_path_factory.mktemp(name), **changes)


@pytest.fixture(scope="session")
def calm(made_once, place_in):
    """The miniature, undisturbed, one step after the other."""

    def make(folder: Path) -> None:
        made = place_in(folder)
        seconds = {step: made.finish(step) for step in (*made.chain, "report")}
        (folder / "seconds.json").write_text(json.dumps(seconds))

    folder = made_once("calm", make)
    made = place_in(folder)
    made.seconds = json.loads((folder / "seconds.json").read_text())
    return made
