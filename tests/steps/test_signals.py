"""Signals at random moments of steps on text and real numbers, of fine-tuning and of scoring: the same bytes.

More of them: PAIRFLOW_SIGNALS=300 python -m pytest tests/steps/test_signals.py
"""

import contextlib
import importlib
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniatures import EXPERIMENTS, RUN, Call, call_of, experiment, make_sources

from pairflow.cli import module_of
from pairflow.plan.jobs import jobs

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LONG = RUN | {"iterations": 150}
PARENT = {"training": LONG, "evaluations": {"main": {"nfe": [2], "samples": 8, "trials": 60}}}
TUNED = PARENT | {"from": "results/0/seed0/models/pairflow"}
TUNED["data"] = EXPERIMENTS["molecules"]["data"] | {"source": "small.smi"}
POINTS = {"training": LONG | {"loss": "velocity"}, "methods": ["pairflow+rf"]}
POINTS["distillation"] = {"rf": {**LONG, "pairs": {"count": 400, "steps": 8}}}
GROUPS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "text": ("text", [PARENT]),
    "real numbers": ("vectors", [PARENT | POINTS]),
    "fine-tuning and scoring": ("molecules", [PARENT, TUNED]),
}
RESUMED = {"resume": "elsewhere/states", "save_every": 0}
TRIALS = int(os.environ.get("PAIRFLOW_SIGNALS", "20"))  # in each group


@pytest.fixture
def start(fork, tmp_path):
    """Start a step; the process."""

    def run(call: Call, **more: object):
        command = importlib.import_module(module_of(call.name)).main
        takes = {option.name for option in command.params}
        known = {name: value for name, value in more.items() if name in takes}
        errors = tmp_path / "errors.txt"
        errors.unlink(missing_ok=True)
        return fork(call.words(**known), tmp_path, errors)

    return run


@pytest.fixture(params=GROUPS)
def calls(request, start):
    """The steps of finished experiments in the working directory, and the seconds that they took."""
    make_sources()
    Path("small.smi").write_text("\n".join(a * "C" + x for a in range(1, 9) for x in ("Cl", "O", "Br")))
    kind, experiments = GROUPS[request.param]
    made = []

    def finish(call: Call) -> None:
        began, process = time.monotonic(), start(call)
        process.join()
        assert process.exitcode == 0, Path("errors.txt").read_text()
        made.append((call, time.monotonic() - began))

    for number, changes in enumerate(experiments):
        made.clear()  # of a parent nothing is disturbed
        root = Path(f"results/{number}")
        for job in jobs(root, experiment(kind, **changes))[:-1]:  # without the report
            finish(call_of(root, job, kind))
    if kind == "molecules":
        options = {"model": Path("results/1/seed0/models/pairflow"), "out": "scores.csv"}
        finish(Call("score", ["library.smi"], options, [Path("scores.csv")]))
    return made


def knock(start, call: Call, number: int, delay: float) -> None:
    """Start a step and send it a signal after some seconds, or after fewer where it ended before."""
    code = 0
    while code == 0 and delay > 1e-6:
        process = start(call, **RESUMED)
        while not Path("errors.txt").exists():  # it is not this command yet
            time.sleep(0.001)
        process.join(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
        process.join()
        code, delay = process.exitcode, delay / 2
    said = Path("errors.txt").read_text()
    # While options are read, click has the last word.
    early = number == signal.SIGINT and code == 1 and said == "\nAborted!\n"
    assert code in (-number, 128 + number) or early, said
    assert "Traceback" not in said, said


@pytest.mark.promise("signal", times=20)
def test_a_step_that_gets_signals_at_random_moments_ends_in_the_same_bytes(calls, start):
    """Two signals to each step before it may end."""
    assert len(calls) <= TRIALS // 2  # so that each step is tried
    random = np.random.default_rng(len(calls))
    for trial in range(TRIALS // 2):
        call, seconds = calls[trial % len(calls)]
        knocked = call.moved("elsewhere")
        for number in random.choice(SIGNALS, 2):
            knock(start, knocked, number, random.uniform(0, seconds))
        process = start(knocked, **RESUMED)
        process.join()
        assert process.exitcode == 0, Path("errors.txt").read_text()
        for mine, theirs in zip(knocked.outputs, call.outputs, strict=True):
            assert theirs.name == "log.parquet" or mine.read_bytes() == theirs.read_bytes(), mine
        assert not Path("elsewhere/states").exists()
        assert not list(Path("elsewhere").rglob("*.partial"))
        shutil.rmtree("elsewhere")
