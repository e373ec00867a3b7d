"""The benchmark for a GPU, with toys on a CPU: tasks are done, compared and recorded.

The process has none of the packages that the machine lacks.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pairflow.extras import EXTRAS

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PAPER = ("qm9", "zinc250k", "mnist_binary", "cifar10")
ON_THE_MACHINE = {"torch", "safetensors", "jinja2", "markupsafe"}  # the latter two come with torch

# A process of its own, because the script forks others, which this one should not.
DRIVER = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))  # None: a package that cannot be imported
from click.testing import CliRunner
sys.path.insert(0, sys.argv[1])
import on_gpu
CliRunner().invoke(on_gpu.main, [sys.argv[2], "--out", sys.argv[3], "--toy"])
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> list[dict]:
    """The tasks in the record of the machine, and in the record after the evaluation elsewhere."""
    folder, found = tmp_path_factory.mktemp("on_gpu"), []
    inputs, out = str(folder / "inputs"), folder / "record.json"
    script = [sys.executable, str(BENCHMARKS / "on_gpu.py"), inputs, "--toy"]
    hidden = {module for modules in EXTRAS.values() for module in modules} - ON_THE_MACHINE
    on_gpu = [sys.executable, "-c", DRIVER, ",".join(hidden), BENCHMARKS, inputs, out]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(BENCHMARKS.parent)}
    for command in ([*script, "--prepare"], on_gpu, [*script, "--out", str(out), "--stages", "evaluation"]):
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert run.returncode == 0, run.stderr
        found += [json.loads(out.read_text())["tasks"]] if out.exists() else []
    return found


def test_every_task_is_recorded_with_its_result(records):
    tasks, _ = records
    assert {task["status"] for task in tasks.values()} == {"done"}, tasks
    stages = {"tests", "sanitizer", "pairing", "one-hot", "pieces", "profile", "speed", "training"}
    assert {name.partition("/")[0] for name in tasks} == stages
    found = {name: task["result"] for name, task in tasks.items()}
    for name in PAPER:
        assert found[f"pairing/{name}"]["equals the CPU"]
        assert set(found[f"one-hot/{name}"]["ratios"]) == {"float32", "TF32", "bfloat16", "int8"}
        assert set(found[f"speed/{name}"]) == {"train", "draw"}
    assert set(found["speed/qm9, variants"]) == {"plain", "float32"}
    assert set(found["speed/cifar10, variants"]) == {"plain", "bf16", "channels last"}
    assert (found["training/scale"]["iterations"], found["training/scale"]["of"]) == (2, 50_000)
    assert set(found["pieces/qm9"]) == {"as it is", "one step", "2 warps, 3 blocks"}
    pieces = found["pieces/qm9"]["as it is"]
    assert pieces["rows"] == 100
    assert all(seconds > 0 for seconds in pieces.values())
    assert pieces["pairing"] > pieces["walk kernel"]
    assert found["training/archive"]["samples"] == 2 * 3  # with their provenance


def test_the_samples_are_evaluated_elsewhere(records):
    for method in ("udlm", "random", "pairflow"):
        entry = records[-1][f"evaluation/evaluate {method}"]
        assert set(entry["result"]["NFE 1"]) == {"valid", "unique", "novel"}, entry
