"""The benchmark for a GPU, with toys on a CPU: tasks are done, compared and recorded.

The process has only the packages that the script's head names, beside those that the script carries along.
"""

import ast
import json
import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PAPER = ("qm9", "zinc250k", "mnist_binary", "cifar10")
ON_THE_MACHINE = ("torch", "numba", "scipy", "pandas", "pyarrow")  # and CuPy, which toys do without

# A process of its own, because the script forks others, which this one should not.
DRIVER = """
import json, sys
from importlib.util import find_spec
from pathlib import Path
from click.testing import CliRunner
sys.path.insert(0, sys.argv[1])
import on_gpu

folder, answers = Path(sys.argv[2]), {}
inputs, out = folder / "inputs", folder / "record.json"

answers["lacking"] = [name for name in ("rdkit", "pooch", "snakemake", "matplotlib") if find_spec(name)]
CliRunner().invoke(on_gpu.main, [str(inputs), "--out", str(out), "--toy"])
answers["record"] = json.loads(out.read_text())
(folder / "answers.json").write_text(json.dumps(answers))
"""


def link(folder: Path, names: set[str]) -> None:
    """A folder with the installed packages of these names only."""
    folder.mkdir()
    for name in names:
        package = distribution(name)
        for top in {file.parts[0] for file in package.files if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / top).exists():
                (folder / top).symlink_to(package.locate_file(top))


def with_dependencies(*names: str) -> set[str]:
    """The names of packages and of all that they need."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            needs = [need for need in distribution(name).requires or () if "extra ==" not in need]
            todo += [re.match(r"[\w.-]+", need)[0] for need in needs if installed(need)]
    return found


def installed(need: str) -> bool:
    try:
        distribution(re.match(r"[\w.-]+", need)[0])
    except ModuleNotFoundError:
        return False
    return True


def carried() -> set[str]:
    """PACKAGES of the script, which takes seconds to import."""
    [packages] = [
        node.value
        for node in ast.parse((BENCHMARKS / "on_gpu.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PACKAGES"
    ]
    return {name for names in packages.elts for name in ast.literal_eval(names.value)}


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict:
    """What the driver wrote down."""
    folder = tmp_path_factory.mktemp("on_gpu")
    script = [sys.executable, str(BENCHMARKS / "on_gpu.py"), str(folder / "inputs"), "--toy"]
    run = subprocess.run([*script, "--prepare"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    link(folder / "machine", with_dependencies(*ON_THE_MACHINE))
    link(folder / "packages", carried())
    paths = [folder / "packages", BENCHMARKS.parent, folder / "machine"]
    bare = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-S", "-c", DRIVER, BENCHMARKS, folder]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
    assert run.returncode == 0, run.stderr
    evaluation = [*script, "--out", str(folder / "record.json"), "--stages", "evaluation"]
    run = subprocess.run(evaluation, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    answers = json.loads((folder / "answers.json").read_text())
    answers["evaluation"] = json.loads((folder / "record.json").read_text())["tasks"]
    return answers


def test_every_task_is_recorded_with_its_result(answers):
    tasks = answers["record"]["tasks"]
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


def test_the_samples_are_evaluated_elsewhere(answers):
    for method in ("udlm", "random", "pairflow"):
        entry = answers["evaluation"][f"evaluation/evaluate {method}"]
        assert set(entry["result"]["NFE 1"]) == {"valid", "unique", "novel"}, entry


def test_the_machine_needs_only_what_the_head_of_the_script_names(answers):
    assert answers["lacking"] == []
