"""The benchmark for a GPU, with toys on a CPU: tasks are done, compared and recorded, and not done again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PAPER = ("qm9", "zinc250k", "mnist_binary", "cifar10")

# One process for all that is asked of the script, because importing it takes seconds. It forks others, which
# this process should not.
DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from click.testing import CliRunner
sys.path.insert(0, sys.argv[1])
import numpy as np
import on_gpu

folder, answers = Path(sys.argv[2]), {}
inputs, out = folder / "inputs", folder / "record.json"

def ask(name, *options, toy=("--toy",)):
    result = CliRunner().invoke(on_gpu.main, [str(inputs), "--out", str(out), *toy, *options])
    answers[name] = result.output
    return json.loads(out.read_text())

def edit(record, *names):
    for name in names:
        del record["tasks"][name]
    out.write_text(json.dumps(record))

def save(stint):
    signal.signal(signal.SIGTERM, lambda *_: (folder / "saved").touch() or os._exit(0))
    time.sleep(60)

answers["record"] = ask("first")
ask("plan", "--plan")
ask("unknown", "--stages", "paring")
ask("no toy", "--plan", toy=())
edit(json.loads(out.read_text()), "pairing/qm9", "one-hot/qm9")
np.savez(inputs / "qm9.npz", tokens=np.zeros((70, 12), np.uint8), symbols=8, shape=())
answers["second record"] = ask("second")
stint = on_gpu.Stint(inputs, out, True, None, {})
answers["stopped"] = on_gpu._in_process(save, stint, 1)
answers["ended"] = on_gpu._in_process(lambda stint: os._exit(1), stint, 60)
(folder / "answers.json").write_text(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict:
    """What the driver wrote down; `saved` is whether a task that ran out of time could still save a file."""
    folder = tmp_path_factory.mktemp("on_gpu")
    command = [sys.executable, "-c", DRIVER, BENCHMARKS, folder]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads((folder / "answers.json").read_text()) | {"saved": (folder / "saved").exists()}


def test_every_task_is_recorded_with_its_result(answers):
    tasks = answers["record"]["tasks"]
    assert {task["status"] for task in tasks.values()} == {"done"}, tasks
    stages = {"tests", "sanitizer", "pairing", "one-hot", "speed", "training"}
    assert {name.partition("/")[0] for name in tasks} == stages
    found = {name: task["result"] for name, task in tasks.items()}
    for name in PAPER:
        assert found[f"pairing/{name}"]["equals the CPU"]
        assert set(found[f"one-hot/{name}"]["ratios"]) == {"torch, float32", "torch, TF32"}
        assert set(found[f"speed/{name}"]) == {"train", "draw"}
    assert set(found["speed/qm9, variants"]) == {"plain", "float32"}
    assert set(found["speed/cifar10, variants"]) == {"plain", "bf16", "channels last"}
    assert (found["training/scale"]["iterations"], found["training/scale"]["of"]) == (2, 50_000)
    for method in ("udlm", "random", "pairflow"):
        assert set(found[f"training/evaluate {method}"]["NFE 1"]) == {"valid", "unique", "novel"}


def test_what_is_finished_is_neither_planned_nor_done_again(answers):
    plan = answers["plan"].splitlines()
    assert plan[0].split() == ["tests/pytest", "120", "s", "done"]
    assert plan[-1].split()[-2:] == ["0", "s"]
    assert [line.partition(":")[0] for line in answers["second"].splitlines()] == [
        "pairing/qm9",
        "one-hot/qm9",
    ]


def test_other_bytes_than_the_hash_on_record_are_a_failure(answers):
    entry = answers["second record"]["tasks"]["pairing/qm9"]
    assert entry["status"] == "failed"
    assert "other bytes than on the CPU" in entry["result"]["reason"]


def test_a_task_out_of_time_may_save_its_state(answers):
    assert answers["stopped"] == ["stopped", {"reason": "it was given 1 s"}]
    assert answers["saved"]
    assert answers["ended"] == ["failed", {"reason": "the process ended without an answer"}]


def test_an_unknown_stage_and_a_record_of_toys_are_refused(answers):
    assert "--stages: paring names no stage" in answers["unknown"]
    assert "expected a record without --toy" in answers["no toy"]
