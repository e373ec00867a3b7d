"""Signals at random moments of steps on text and real numbers, of fine-tuning and of scoring: the same bytes.

More of them: PAIRFLOW_SIGNALS=300 python -m pytest tests/steps/test_signals.py
"""

import contextlib
import importlib
import os
import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairflow.cli import module_of
from pairflow.config import Experiment, check
from pairflow.plan.job import Job
from pairflow.plan.jobs import jobs

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RUN = {"batch_size": 8, "iterations": 150, "learning_rate": 1e-2}
SHARED = {
    "description": "steps to disturb",
    "scale": "reduced",
    "network": {"name": "mlp", "width": 8, "blocks": 1, "time_width": 8},
    "pairing": {"steps": 3},
    "training": {**RUN, "validate_every": 50},
    "methods": ["pairflow"],
    "evaluations": {"main": {"nfe": [2], "samples": 8, "trials": 60}},
}
TEXT = {
    "data": {
        **{"source": "lines.txt", "tokeniser": "characters", "rows": "lines", "length": 16},
        **{"validation_fraction": 0.2, "judge_fraction": 0.2},
    },
    "judge": {"order": 3},
}
POINTS = {
    "flow": "continuous",
    "data": {"source": "two_moons", "dims": 4, "training_rows": 200, "validation_rows": 50},
    "training": {**RUN, "loss": "velocity"},
    "distillation": {"rf": {**RUN, "pairs": {"count": 400, "steps": 8}}},
    "methods": ["pairflow+rf"],
}
PARENT = {"data": {"source": "large.smi", "length": 16, "validation_fraction": 0.2}, "training": RUN}
TUNED = {
    **PARENT,
    "data": {**PARENT["data"], "source": "small.smi"},
    "from": "results/0/seed0/models/pairflow",
}
GROUPS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "text": ("text", [TEXT]),
    "real numbers": ("vectors", [POINTS]),
    "fine-tuning and scoring": ("molecules", [PARENT, TUNED]),
}
RESUMED = {"resume": "elsewhere/states", "save_every": 0}
TRIALS = int(os.environ.get("PAIRFLOW_SIGNALS", "24"))  # in each group


@dataclass(frozen=True)
class Call:
    """A step to run as a process of its own, and what it writes."""

    name: str
    files: list[Path]
    options: dict[str, Any]
    outputs: list[Path]
    seconds: float = 0


@pytest.fixture
def start(fork, as_arguments, tmp_path):
    """Start a step; the process."""

    def run(call: Call, **more: object):
        command = importlib.import_module(module_of(call.name)).main
        takes = {option.name for option in command.params}
        known = {name: value for name, value in {"quiet": True, **more}.items() if name in takes}
        options = call.options | known
        errors = tmp_path / "errors.txt"
        errors.unlink(missing_ok=True)
        return fork([call.name, *as_arguments(*call.files, **options)], tmp_path, errors)

    return run


def make_sources() -> None:
    words = np.array(["sun", "moon", "star"])[np.random.default_rng(0).integers(3, size=(300, 3))]
    Path("lines.txt").write_text("\n".join(map(" ".join, words)))
    large = [a * "C" + x + b * "C" for a in range(1, 6) for b in range(1, 6) for x in "ONS"]
    Path("large.smi").write_text("\n".join(large))
    Path("small.smi").write_text("\n".join(a * "C" + x for a in range(1, 9) for x in ("Cl", "O", "Br")))


@pytest.fixture(params=GROUPS)
def calls(request, tmp_path, monkeypatch, call_of, start):
    """The steps of finished experiments in the working directory, and how long they took."""
    monkeypatch.chdir(tmp_path)
    make_sources()
    modality, experiments = GROUPS[request.param]
    made = []

    def finish(call: Call) -> None:
        began, process = time.monotonic(), start(call)
        process.join()
        assert process.exitcode == 0, Path("errors.txt").read_text()
        made.append(replace(call, seconds=time.monotonic() - began))

    for number, values in enumerate(experiments):
        made.clear()  # of a parent nothing is disturbed
        root = Path(f"results/{number}")
        for job in jobs(root, check(Experiment, SHARED | values, "test")):
            if job.rule != "report":
                finish(as_call(root, job, modality, call_of))
    if request.param == "fine-tuning and scoring":
        model = Path("results/1/seed0/models/pairflow")
        options = {"model": model, "out": "scores.csv"}
        finish(Call("score", [Path("large.smi")], options, [Path("scores.csv")]))
    return made


def as_call(root: Path, job: Job, modality: str, call_of) -> Call:
    return Call(*call_of(root, job, modality), [*job.outputs.values()])


def elsewhere(call: Call) -> Call:
    """The same step with other places for what it writes."""
    moved = {str(path): Path("elsewhere") / path for path in call.outputs}
    options = {name: moved.get(str(value), value) for name, value in call.options.items()}
    return replace(call, options=options, outputs=[*moved.values()])


def knock(start, call: Call, number: int, delay: float) -> None:
    """Start a step and send it a signal after some seconds, or after fewer where it ended before."""
    code = 0
    while code == 0 and delay > 1e-6:
        process = start(call, **RESUMED)
        while not Path("errors.txt").exists():  # it is not this command yet
            time.sleep(0.001)
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
        process.join()
        code, delay = process.exitcode, delay / 2
    said = Path("errors.txt").read_text()
    # While options are read, click has the last word.
    early = number == signal.SIGINT and code == 1 and said == "\nAborted!\n"
    assert code in (-number, 128 + number) or early, said
    assert "Traceback" not in said, said


@pytest.mark.promise("signal", times=24)
def test_a_step_that_gets_signals_at_random_moments_ends_in_the_same_bytes(calls, start):
    """Two signals to each step before it may end."""
    assert len(calls) <= TRIALS // 2  # so that each step is tried
    random = np.random.default_rng(len(calls))
    for trial in range(TRIALS // 2):
        call = calls[trial % len(calls)]
        knocked = elsewhere(call)
        for number in random.choice(SIGNALS, 2):
            knock(start, knocked, number, random.uniform(0, call.seconds))
        process = start(knocked, **RESUMED)
        process.join()
        assert process.exitcode == 0, Path("errors.txt").read_text()
        for mine, theirs in zip(knocked.outputs, call.outputs, strict=True):
            assert theirs.name == "log.parquet" or mine.read_bytes() == theirs.read_bytes(), mine
        assert not Path("elsewhere/states").exists()
        assert not list(Path("elsewhere").rglob("*.partial"))
        shutil.rmtree("elsewhere")
