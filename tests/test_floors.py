"""A module imports only from lower floors of the house; heavy packages only where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pairflow.config import BASES, DISTILLATIONS, FLOWS, NETWORKS, SAMPLERS
from pairflow.kinds import KINDS, load_kind

PACKAGE = Path(__file__).parent.parent / "pairflow"
# Lowest first. `flow.schedule` stands lower than the rest of flow, the graph higher than the rest of plan.
# Of kinds, the list and the settings stand with the configuration, what is shown on pages with the report.
FLOORS = (
    ("_version", "errors", "limits", "rng"),
    ("arguments", "extras", "files"),
    ("arrays", "pixels", "published"),
    ("artifacts", "config", "flow.schedule"),
    ("runtime",),
    ("data", "flow", "networks", "pairing", "plan"),
    ("metrics",),
    ("training",),
    ("kinds",),
    ("generate",),
    ("plan.jobs",),
    ("checkup", "estimate"),
    ("report",),
    ("kinds.page",),
    ("steps",),
    ("cli",),
    ("__main__",),
)
EXTRAS = ("extras.py", "checkup/packages.py")  # which name the extras of the package
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def modules():
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def room_of(module: str) -> str:
    """The room of a module named below `pairflow`: mostly its first name."""
    first, *rest = module.split(".")
    if first == "kinds":
        parts = {"page": "kinds.page", "settings": "config", "steps": "steps"}
        if len(rest) < 2:  # the list, or what is imported from it; or the class of kinds
            return "kinds" if rest == ["kind"] else "config"
        return parts.get(rest[1], "kinds")
    plan = ("jobs", "lineage", "execution", "own_files", "sizes", "work")
    special = ("flow.schedule", *(f"plan.{name}" for name in plan))
    if module.startswith(special):
        return "flow.schedule" if first == "flow" else "plan.jobs"
    return first


def imported(path: Path) -> set[str]:
    """Rooms that a module imports from, at its top or inside its functions."""
    modules = set()
    for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
        if isinstance(node, ast.ImportFrom):
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {room_of(module.removeprefix("pairflow.")) for module in modules if module.startswith("pairflow.")}


@pytest.mark.parametrize("path", modules(), ids=str)
def test_imports_only_lower_floors(path):
    own = room_of(".".join(path.with_suffix("").parts))
    for room in imported(path) - {own, "InputError", "__version__", "pair", "pair_continuous"}:
        assert FLOOR[room] < FLOOR[own], f"{path} imports {room}"


def test_pages_of_the_report_do_not_import_one_another():
    """Shared modules of report/ import no page; each page imports only these and its own modules."""
    pages = {"experiment", "compare"}
    for path in modules():
        if path.parts[0] == "report":
            own = path.parts[1] if path.parts[1] in pages else None
            text = (PACKAGE / path).read_text()
            for page in pages - {own}:
                assert f"pairflow.report.{page}" not in text, f"{path} imports {page}"
                assert f"pairflow.report import {page}" not in text, f"{path} imports {page}"


def test_steps_do_not_import_one_another():
    shared = ("command.py", "options.py")
    steps = [path for path in modules() if path.parts[0] == "steps" and path.name not in shared]
    assert not [path for path in steps if path.name.startswith("_")]
    assert len(steps) >= 6
    for path in steps:
        for other in steps:
            assert f"pairflow.steps.{other.stem}" not in (PACKAGE / path).read_text() or path == other


def definitions(kind: type[ast.AST]):
    """(module, definition) of every class or function of the package."""
    for path in modules():
        for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
            if isinstance(node, kind):
                yield path, node


def test_each_class_has_a_name_of_its_own():
    names = [node.name for _, node in definitions(ast.ClassDef)]
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_functions_are_short_and_called_by_what_they_do():
    for path, node in definitions(ast.FunctionDef):
        docstring = node.body[0] if ast.get_docstring(node) else None
        lines = node.end_lineno - node.lineno + 1
        lines -= docstring.end_lineno - docstring.lineno + 1 if docstring else 0
        most = 30 if path.parts[0] == "steps" and node.name == "main" else 60
        assert lines <= most, f"{path}: {node.name} has {lines} lines"
        assert node.name != "of", path


def test_what_only_the_workflow_needs_is_not_imported():
    """Imports in a fresh interpreter, with what only the workflow needs made impossible to import."""
    modules = ["pairflow", "pairflow.pairing.cpu.engine", "pairflow.pairing.gpu.engine"]
    modules += [f"pairflow.training.{name}" for name in ("dcd", "loop")]
    modules += ["pairflow.kinds.images.extractors"]
    modules += [f"pairflow.steps.{name}" for name in ("doctor", "estimate", "new", "train")]
    code = (
        "import sys\n"
        "names = ('rdkit', 'snakemake', 'cupy', 'jinja2', 'matplotlib', 'torchvision', "
        "'pytorch_fid')\n"
        "for name in names: sys.modules[name] = None\n"
        "import pairflow\n"
        "assert not {'numpy', 'torch', 'pandas'}.intersection(sys.modules)\n"
        "pairflow.results, pairflow.write_pairs, pairflow.pair\n"
        "assert 'torch' not in sys.modules\n"
        f"import {', '.join(modules)}"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def constants(*nodes: ast.AST | None) -> set[str]:
    """The texts among some expressions."""
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("path", modules(), ids=str)
def test_only_a_kinds_own_folder_names_it(path):
    """Nothing else imports from it, names a step or a class of it, or compares with its name.

    `tokens`, `vectors` and `text` are names of tables and columns as well, and extras are named by kinds.
    """
    if path.parts[0] == "kinds" and len(path.parts) > 2:
        others = {*KINDS} - {path.parts[1]}
    else:
        others = {*KINDS} - ({*KINDS} if path.parts == ("kinds", "__init__.py") else set())
    text = (PACKAGE / path).read_text()
    assert [kind for kind in others if f"pairflow.kinds.{kind}" in text] == []
    if path.parts[0] == "kinds" or str(path) in EXTRAS:
        return
    own = {load_kind(kind).settings.__name__ for kind in KINDS} | {type(load_kind(k)).__name__ for k in KINDS}
    for node in ast.walk(ast.parse(text)):
        assert not (isinstance(node, ast.Name) and node.id in own), node.id
        named = constants(node) | constants(*(node.comparators if isinstance(node, ast.Compare) else ()))
        assert not named & ({*KINDS} - {"tokens", "vectors", "text"}), named
        assert not [name for name in named if name.endswith(tuple(f"_{kind}" for kind in KINDS))], named


def test_every_list_stands_once():
    """Names of networks, flows and distillations stand together only where they are defined."""
    for path in modules():
        if path.parts[0] == "config" or str(path) in EXTRAS:
            continue
        for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
            elements = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            for names in (NETWORKS, FLOWS, DISTILLATIONS, KINDS, SAMPLERS):
                found = constants(*elements) & {*names}
                assert len(found - {"tokens", "vectors", "text"}) < 2, f"{path}: {found}"
            assert len(constants(*elements) & {*BASES}) < 3, f"{path}: {constants(*elements)}"
