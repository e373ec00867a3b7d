"""A module imports only from lower floors of the house; heavy packages only where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pairflow"
FLOORS = {
    "_version": 0,
    "errors": 0,
    "schedule": 0,
    "rng": 0,
    "processes": 0,
    "config": 1,
    "artifacts": 1,
    "layout": 2,
    "data": 2,
    "pairing": 2,
    "flow": 2,
    "networks": 2,
    "metrics": 2,
    "checkup": 3,
    "planning": 3,
    "training": 3,
    "report": 3,
    "steps": 4,
    "cli": 5,
}


def modules():
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def imported(path: Path) -> set[str]:
    """First names below `pairflow` that a module imports, at its top or inside its functions."""
    names = set()
    for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "pairflow":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pairflow."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("pairflow.")}
    return names


@pytest.mark.parametrize("path", modules(), ids=str)
def test_imports_only_lower_floors(path):
    own = path.parts[0].removesuffix(".py")
    for name in imported(path) - {own}:
        assert FLOORS[name] < FLOORS[own], f"{path} imports {name}"


def test_steps_do_not_import_one_another():
    steps = [path for path in modules() if path.parts[0] == "steps" and not path.name.startswith("_")]
    assert len(steps) >= 6
    for path in steps:
        for other in steps:
            assert f"pairflow.steps.{other.stem}" not in (PACKAGE / path).read_text() or path == other


@pytest.mark.parametrize(
    "module",
    [
        "pairflow",
        "pairflow.pairing.cpu",
        "pairflow.pairing.gpu",
        "pairflow.training.dcd",
        "pairflow.training.generate",
        "pairflow.training.loop",
        "pairflow.metrics.extractors",
        "pairflow.steps.doctor",
        "pairflow.steps.estimate",
        "pairflow.steps.new",
        "pairflow.steps.train",
    ],
)
def test_what_only_the_workflow_needs_is_not_imported(module):
    """A plain import in a fresh interpreter, with what only the workflow needs made impossible to import."""
    code = (
        "import sys\n"
        "names = ('rdkit', 'snakemake', 'cupy', 'jinja2', 'matplotlib', 'plotly', 'torchvision', "
        "'pytorch_fid')\n"
        "for name in names: sys.modules[name] = None\n"
        f"import {module}"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
