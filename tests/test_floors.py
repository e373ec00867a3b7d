"""A module imports only from lower floors of the house; heavy packages only where they are used."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import pytest

from pairflow.config import BASES, DISTILLATIONS, FLOWS, NETWORKS, SAMPLERS
from pairflow.kinds import KINDS, load_kind

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pairflow"
# Lowest first. Some modules stand lower or higher than the folder they are in, see `room_of`.
FLOORS = (
    ("_version", "errors", "limits", "metrics.metric", "pixels", "rng"),
    ("arguments", "extras", "files", "flow.schedule", "metrics.shared"),
    ("arrays", "published", "settings"),
    ("artifacts", "kinds.*.settings"),
    ("kinds.registry",),
    ("config", "runtime"),
    ("data", "flow", "metrics", "networks", "pairing", "plan"),
    ("report", "training"),
    ("kinds.kind",),
    ("kinds",),
    ("generate", "plan.jobs"),
    ("checkup", "estimate"),
    ("report.pages",),
    ("kinds.*",),
    ("steps",),
    ("kinds.*.steps",),
    ("cli",),
    ("__main__", "api.local", "api.own_data"),
    ("api.wanted",),
    ("api",),
    ("pairflow",),
)
# The folders and modules at the top of each kind of more than ten modules, lowest first.
ROOMS = {
    "images": (
        *("settings", "prepare", "measures", "extractors", "data_sets", "rows", "on_demand"),
        *("measure", "page", "kind", "steps"),
    ),
    "text": (
        *("settings", "ngrams", "kneser_ney", "gpt2", "controls", "tokenisers", "records", "prepare"),
        *("data_sets", "survey", "on_demand", "measure", "page", "kind"),
    ),
    "molecules": ("settings", "structures", "data", "measures", "page", "on_demand", "kind", "steps"),
}
EXTRAS = ("extras.py", "checkup.py")  # which name the extras of the package
PLUG_INS = ("kinds/registry.py", "training/catalogue.py")  # which list names of config with their classes
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def modules():
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def name_modules() -> dict[str, Path]:
    """The path of each module of the package, packages included, by its name."""
    paths = [path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def room_of(module: str) -> str:
    """The room of a module: mostly its first name below `pairflow`."""
    name = module.removeprefix("pairflow.")
    first, *rest = name.split(".")
    if name in FLOOR:
        return name
    if first == "kinds":
        lowest = rest[1:2] == ["settings"]
        return "kinds.*.settings" if lowest else "kinds.*.steps" if rest[1:2] == ["steps"] else "kinds.*"
    if first == "report" and rest and rest[0] in ("experiment", "compare", "headline", "outlook"):
        return "report.pages"
    higher = ("jobs", "lineage", "execution", "own_files", "sizes", "work")
    return "plan.jobs" if first == "plan" and rest[0].startswith(higher) else first


def imported(source: str, known: Collection[str]) -> set[str]:
    """Which of the `known` modules a source imports: at its top, in functions, for types or by name."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= {name if name in known else node.module for name in names}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named |= constants(*node.args)
    return named & {*known}


@cache
def arrows() -> dict[str, set[str]]:
    """The modules that each module of the package imports."""
    known = name_modules()
    return {name: imported((ROOT / path).read_text(), known) for name, path in known.items()}


def find_circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Search depth-first for modules each of which imports the next, and the last one the first."""
    done: set[str] = set()

    def visit(module: str, chain: list[str]) -> list[str]:
        if module in chain:
            return chain[chain.index(module) :]
        for other in sorted(graph[module]) if module not in done else ():
            if circle := visit(other, [*chain, module]):
                return circle
        done.add(module)
        return []

    return next(filter(None, (visit(module, []) for module in graph)), [])


def test_imports_only_lower_floors():
    for module, path in name_modules().items():
        own = room_of(module)
        for other in arrows()[module]:
            assert room_of(other) == own or FLOOR[room_of(other)] < FLOOR[own], f"{path} imports {other}"


def rooms_of(kind: str) -> dict[str, str]:
    """The modules of a kind, each with the folder or the module at the top of the kind that it belongs to."""
    begin = f"pairflow.kinds.{kind}."
    return {name: name.removeprefix(begin).split(".")[0] for name in name_modules() if name.startswith(begin)}


def test_large_kinds_have_few_rooms():
    files = {kind: [path for path in modules() if path.parts[:2] == ("kinds", kind)] for kind in KINDS}
    assert {kind for kind in KINDS if len(files[kind]) > 10} == {*ROOMS}
    for kind, rooms in ROOMS.items():
        assert {*rooms_of(kind).values()} == {*rooms}, kind
        assert len(rooms) <= 8 or len(files[kind]) <= 20, kind


@pytest.mark.parametrize("kind", ROOMS)
def test_rooms_of_a_kind_import_only_lower_ones(kind):
    rooms, height = rooms_of(kind), ROOMS[kind].index
    for module, own in rooms.items():
        for other in arrows()[module] & {*rooms}:
            assert height(rooms[other]) <= height(own), f"{module} imports {other}"


def test_modules_do_not_import_one_another_in_a_circle():
    assert find_circle(arrows()) == []


def test_a_circle_is_found_however_it_is_closed():
    sources = {
        "a": "import b",
        "b": "def f():\n    from c import x",
        "c": "if TYPE_CHECKING:\n    from d import e",
        "d.e": "importlib.import_module('b')",
        "f": "import a",
    }
    graph = {name: imported(source, sources) for name, source in sources.items()}
    assert find_circle({**graph, "d.e": []}) == []
    assert find_circle(graph) == ["b", "c", "d.e"]


def test_pages_of_the_report_do_not_import_one_another():
    """Shared modules of report/ import no page; each page imports only these and its own modules."""
    pages = {"pairflow.report.experiment", "pairflow.report.compare"}
    for module, others in arrows().items():
        if module.startswith("pairflow.report"):
            foreign = tuple(page for page in pages if not module.startswith(page))
            assert not [other for other in others if other.startswith(foreign)], module


def test_steps_do_not_import_one_another():
    shared = {"pairflow.steps", "pairflow.steps.command", "pairflow.steps.options"}
    steps = {name for name in arrows() if name.startswith("pairflow.steps")} - shared
    assert len(steps) >= 6
    for step in steps:
        assert not arrows()[step] & steps, step


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


def test_only_a_kinds_own_folder_names_it():
    """Nothing else imports from it, names a step or a class of it, or compares with its name.

    `tokens`, `vectors` and `text` are names of tables and columns as well, and extras are named by kinds.
    """
    own = {load_kind(kind).settings.__name__ for kind in KINDS} | {type(load_kind(k)).__name__ for k in KINDS}
    for path in modules():
        inside = path.parts[1] if path.parts[0] == "kinds" and len(path.parts) > 2 else None
        others = set() if path.parts == ("kinds", "registry.py") else {*KINDS} - {inside}
        text = (PACKAGE / path).read_text()
        assert [kind for kind in others if f"pairflow.kinds.{kind}" in text] == [], path
        if path.parts[0] == "kinds" or str(path) in EXTRAS:
            continue
        for node in ast.walk(ast.parse(text)):
            assert not (isinstance(node, ast.Name) and node.id in own), f"{path}: {node.id}"
            named = constants(node) | constants(*(node.comparators if isinstance(node, ast.Compare) else ()))
            assert not named & ({*KINDS} - {"tokens", "vectors", "text"}), f"{path}: {named}"
            ends = tuple(f"_{kind}" for kind in KINDS)
            assert not [name for name in named if name.endswith(ends)], f"{path}: {named}"


@pytest.mark.parametrize("kind", KINDS)
def test_only_settings_list_the_data_sets_of_a_kind(kind):
    names = {*load_kind(kind).settings.names}
    for path in (PACKAGE / "kinds" / kind).rglob("*.py"):
        found = constants(*ast.walk(ast.parse(path.read_text()))) & names
        assert "settings" in str(path) or len(found) < 3, f"{path}: {found}"  # "mnist" is also a folder


def test_any_stands_only_where_a_library_returns_it():
    lines = [line for path in modules() for line in (PACKAGE / path).read_text().splitlines()]
    assert sum("import" not in line and bool(re.search(r"\bAny\b", line)) for line in lines) <= 150


def test_every_list_stands_once():
    """Names of networks, flows and distillations stand together only where they are defined."""
    for path in modules():
        if path.parts[0] in ("config", "settings") or str(path) in (*EXTRAS, *PLUG_INS):
            continue
        for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
            elements = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            for names in (NETWORKS, FLOWS, DISTILLATIONS, KINDS, SAMPLERS):
                found = constants(*elements) & {*names}
                assert len(found - {"tokens", "vectors", "text"}) < 2, f"{path}: {found}"
            assert len(constants(*elements) & {*BASES}) < 3, f"{path}: {constants(*elements)}"
