"""docs/extending.md, done: each section's changes on a copy of the package, and its example run there.

All sections together are applied to one copy of the repository, which must keep its own rules.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
BLOCK = re.compile(
    r'^(?P<indent> *)```(?P<kind>\w+)(?: title="(?P<path>[^"]+)")?\n(?P<body>.*?)^ *```$', re.M | re.S
)
COPIED = (
    *(
        "pairflow",
        "tests",
        "docs",
        "benchmarks",
        "workflow_config.yaml",
        "config.schema.json",
        "pyproject.toml",
    ),
    ".mypy_cache",  # where `make lint` has run, the types of what did not change are known
)
TESTS = (  # those that know lists of names, or try whatever is in one
    "tests/config",
    "tests/test_floors.py::test_imports_only_lower_floors",
    "tests/test_floors.py::test_each_class_has_a_name_of_its_own",
    "tests/networks/test_networks.py::test_every_network_has_a_class_for_each_of_its_flows",
    "tests/networks/test_networks.py::test_an_unknown_network_is_refused_by_name",
    "tests/steps/test_distill.py::test_every_distillation_has_the_signature_that_is_documented",
    "tests/steps/test_distill.py::test_equal_runs_give_equal_bytes_and_other_weights_than_the_parents[more]",
    "tests/kinds/test_sources.py::test_every_name_in_the_configuration_is_a_source",
    "tests/report/test_entries.py::"
    "test_every_metric_has_an_entry_that_agrees_with_its_tables_on_what_is_better",
)
CHECKED = {  # modules that Python runs in the copy with all sections, and their arguments
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "tests": ["pytest", "-q", *TESTS],
}


def apply(section: str, copy: Path) -> str:
    """Make the changes of a section in a copy of the repository, and return its example."""
    examples = []
    for match in BLOCK.finditer(SECTIONS[section]):
        body = textwrap.dedent(match["body"]) if match["indent"] else match["body"]
        path = match["path"] and copy / match["path"]
        if path is None:
            examples.append(body)
        elif match["kind"] == "diff":
            apply_diff(path, body)
        else:
            assert not path.exists(), f"{match['path']}: not a new file"
            path.write_text(body, encoding="utf-8")
    [example] = examples
    return example


def apply_diff(path: Path, body: str) -> None:
    """Replace the lines of a diff block, which must stand in the file once, by the new ones."""
    lines = body.replace("... ", "").splitlines()
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: expected once, found {text.count(old)} times:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(command: list[str], folder: Path, copy: Path) -> str:
    """The output of a command of Python in a folder, where `pairflow` is the copy's."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_repository(copy: Path, names: Iterable[str]) -> None:
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, copy)


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Path:
    """A copy of the repository with the changes of all sections, and its schema written again."""
    copy = tmp_path_factory.mktemp("everything")
    copy_repository(copy, COPIED)
    for section in SECTIONS:
        apply(section, copy)
    [command] = re.findall(r"^python -m (\S+) > config\.schema\.json$", PAGE, re.MULTILINE)
    (copy / "config.schema.json").write_text(run(["-m", command], copy, copy), encoding="utf-8")
    return copy


def test_the_sections_are_those_that_contributors_ask_for():
    topics = (
        "network",
        "sampler",
        "base method",
        "coupling inside a batch",
        "distillation",
        "data set",
        "metric",
    )
    assert list(SECTIONS) == [f"A {topic}" for topic in topics]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_example_works(section, tmp_path):
    copy = tmp_path / "copy"
    copy_repository(copy, ["pairflow", "docs"])
    example = apply(section, copy)
    here = f"import pairflow; assert {str(copy)!r} in pairflow.__file__"
    run(["-c", f"{here}\n{example}"], tmp_path, copy)


@pytest.mark.parametrize("check", CHECKED)
def test_all_sections_together_keep_the_rules_of_the_repository(check, everything):
    run(["-m", *CHECKED[check]], everything, everything)


def test_one_experiment_takes_what_all_sections_add(everything, tmp_path):
    run([str(everything / "tests" / "docs" / "all_recipes.py")], tmp_path, everything)
