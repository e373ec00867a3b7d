"""kill -9 at random moments of pairing, training, sampling and the report: the bytes are the same."""

import os
import shutil
import signal
import time

import numpy as np
import pytest

from pairflow.artifacts import read_provenance

KILLS = 3  # of each step
BEFORE = {"pair": ["data"], "train": ["data", "seed0/pairs"], "sample": ["data", "seed0/models"]}
STATES = {"pair": "*.block", "train": "[0-9]*.state", "sample": "*.block"}


def states(place, step):
    return set((place.folder / "states").rglob(STATES[step]))


def knock(place, step, random, started) -> None:
    """Kill the step: at once, while it starts or works, or a moment after it has saved something new."""
    before = states(place, step)
    process = place.start(step, resume="states", save_every=0)
    if started:
        while not states(place, step) - before:
            assert process.is_alive(), place.errors()
            time.sleep(0.002)
    time.sleep(random.uniform(0, 0.05 if started else 0.3))
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, place.errors()


@pytest.mark.promise("kill", times=KILLS)
@pytest.mark.parametrize("step", STATES)
def test_a_killed_step_ends_in_the_same_bytes(calm, place, step):
    knocked, random = place(step), np.random.default_rng(len(step))
    for part in BEFORE[step]:
        shutil.copytree(calm.root / part, knocked.root / part)
    spent, began = [0.0], time.monotonic()
    for knocks in range(KILLS):
        knock(knocked, step, random, started=knocks % 2 == 0)
        assert not any(path.exists() for path in knocked.outputs(step))
        [run] = (knocked.folder / "states").iterdir()
        spent.append(read_provenance(run / "spent").get("seconds", spent[-1]))
    assert spent == sorted(spent)
    knocked.finish(step, resume="states")
    knocked.require_same(step, calm)
    seconds = read_provenance(knocked.outputs(step)[0])["seconds"]
    assert 0 < spent[1] <= spent[-1] < seconds < time.monotonic() - began
    assert not (knocked.folder / "states").exists()
    assert not list(knocked.folder.rglob("*.partial"))


@pytest.mark.promise("kill", times=2)
def test_wrong_clocks_change_nothing(calm, place):
    """States and inputs from the year 2100 and from 1980: what is saved is taken up, to the same bytes."""
    knocked, random = place("clock"), np.random.default_rng(0)
    shutil.copytree(calm.root / "data", knocked.root / "data")
    knock(knocked, "pair", random, started=True)
    for number, path in enumerate(sorted(knocked.folder.rglob("*"))):
        os.utime(path, (4.1e9, 4.1e9) if number % 2 else (3.2e8, 3.2e8))
    knock(knocked, "pair", random, started=True)
    knocked.finish("pair", resume="states")
    knocked.require_same("pair", calm)


@pytest.mark.promise("kill", times=3)
def test_a_killed_report_is_the_same(calm, place):
    knocked, random = place("report"), np.random.default_rng(0)
    shutil.copytree(calm.root, knocked.root)
    outputs, killed = knocked.outputs("report"), 0
    while killed < 3:
        for path in outputs:
            path.unlink(missing_ok=True)
        process = knocked.start("report")
        process.join(random.uniform(0, calm.seconds["report"]))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        if outputs[0].exists():
            assert outputs[0].read_bytes() == calm.outputs("report")[0].read_bytes()
    knocked.finish("report")
    assert outputs[0].read_bytes() == calm.outputs("report")[0].read_bytes()
    assert outputs[-1].read_text().endswith("</html>")
    assert not list(knocked.folder.rglob("*.partial"))
