"""docs/extending.md, done: all sections' changes on a copy of the repository, and their examples run.

The copy must keep its own rules. One step or more is run with each addition, and the quick experiment and the
new kind of data go from raw data to a report.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pairflow.kinds import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
BLOCK = re.compile(
    r'^(?P<indent> *)```(?P<kind>\w+)(?: title="(?P<path>[^"]+)")?\n(?P<body>.*?)^ *```$', re.M | re.S
)
COPIED = ["pairflow", "tests", "docs", "benchmarks", "rules", "profiles", "envs", "Snakefile", "conftest.py"]
COPIED += ["workflow_config.yaml", "config", "recipes", "pyproject.toml", "README.md"]
COPIED += [".mypy_cache"]  # where `make lint` has run, the types of what did not change are known
KIND, QUICK = "A kind of data", "A quick experiment"
RECIPES = [section for section in SECTIONS if section not in (KIND, QUICK)]  # each is run below
TESTS = (  # those that know lists of names, or try whatever is in one
    "tests/config",
    "tests/flow/test_arguments.py",
    "tests/flow/test_samplers.py::test_the_greedy_tail_counts_as_a_call_where_it_can_change_a_sample",
    "tests/generate/test_choice.py",
    "tests/kinds/molecules/measures/test_counts.py::test_by_hand",
    "tests/kinds/vectors/test_measure.py",
    "tests/test_floors.py::test_imports_only_lower_floors",
    "tests/test_floors.py::test_each_class_has_a_name_of_its_own",
    "tests/networks/test_networks.py::test_every_network_has_a_class_for_each_of_its_flows",
    "tests/networks/test_networks.py::test_rows_that_a_network_cannot_take_are_refused",
    "tests/steps/test_distill.py::test_equal_runs_give_equal_bytes_and_other_weights_than_the_parents[more]",
    "tests/docs/test_docs.py::test_the_page_on_metrics_has_the_texts_of_the_metrics",
    "tests/report/test_templates.py::"
    "test_every_metric_has_a_description_and_facts_that_agree_on_what_is_better",
)
CHECKED = {  # modules that Python runs in the copy with all sections, and their arguments
    "style": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy", "--cache-dir", str(ROOT / ".mypy_cache")],  # most of it is as in the repository
    "tests": ["pytest", "-q", *TESTS],
}


def apply(section: str, copy: Path) -> str:
    """Make the changes of a section in a copy of the repository, and return its example."""
    examples = []
    for match in BLOCK.finditer(SECTIONS[section]):
        body = textwrap.dedent(match["body"]) if match["indent"] else match["body"]
        path = match["path"] and copy / match["path"]
        if path is None:
            examples += [body] if match["kind"] == "python" else []
        elif match["kind"] == "diff":
            apply_diff(path, body)
        else:
            assert not path.exists(), f"{match['path']}: not a new file"
            path.parent.mkdir(parents=True, exist_ok=True)
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


def list_files(section: str) -> dict[str, list[str]]:
    """The files of the package that a section changes or adds, and the bodies of their blocks."""
    files: dict[str, list[str]] = {}
    for match in BLOCK.finditer(SECTIONS[section]):
        if (match["path"] or "").startswith("pairflow/"):
            files.setdefault(match["path"], []).append(textwrap.dedent(match["body"]))
    return files


def without_a_file(section: str) -> dict[str, str]:
    """What a section runs: its language -> its lines."""
    return {match["kind"]: match["body"] for match in BLOCK.finditer(SECTIONS[section]) if not match["path"]}


def run(command: list[str], folder: Path, copy: Path) -> str:
    """The output of a command of Python in a folder, where `pairflow` is the copy's."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), str(copy / "tests")])}
    how = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, *command], check=False, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_repository(copy: Path, *names: str) -> None:
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, copy)


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Path:
    """A copy of the repository with the changes of all sections; its schema and page written again."""
    copy = tmp_path_factory.mktemp("everything")
    copy_repository(copy, *COPIED)
    (copy / "examples").mkdir()
    for section in SECTIONS:
        example = apply(section, copy)
        if section in RECIPES:
            (copy / "examples" / f"{section}.py").write_text(example, encoding="utf-8")
    [command] = re.findall(r"^python -m (\S+) > config/schema\.json$", PAGE, re.MULTILINE)
    (copy / "config/schema.json").write_text(run(["-m", command], copy, copy), encoding="utf-8")
    [script] = re.findall(r"`python (docs/\S+\.py)`", PAGE)
    run([script], copy, copy)
    return copy


@pytest.mark.parametrize("section", RECIPES)
def test_a_recipe_touches_at_most_three_files(section):
    """A data set, of kinds that have published ones, and a metric touch files of their kind only."""
    files = list_files(section)
    kinds = {path.split("/")[2] for path in files if path.startswith("pairflow/kinds/")}
    kept = {"A data set": {"molecules", "images", "text"}, "A metric": {*KINDS}}
    assert kinds == kept.get(section, set())
    for kind in kinds or {""}:
        assert 1 <= sum(kind in path.split("/") or not kind for path in files) <= 3


def test_a_kind_of_data_is_a_folder_and_one_line_in_the_list():
    files = list_files(KIND)
    [line] = files.pop("pairflow/kinds/registry.py")
    assert [text[0] for text in line.splitlines()] == ["-", "+"]
    assert {path.rpartition("barcodes/")[0] for path in files} == {"pairflow/kinds/"}
    assert sum(bool(line.strip()) for [body] in files.values() for line in body.splitlines()) <= 120


RUN_EXAMPLES = """
import pairflow, runpy, sys
assert pairflow.__file__.startswith(sys.argv[1])
for example in sys.argv[2:]:
    runpy.run_path(example)
"""


def test_the_examples_work(everything, tmp_path):
    """In one process, whose traceback names the example."""
    examples = sorted(map(str, (everything / "examples").iterdir()))
    assert len(examples) == len(RECIPES)
    run(["-c", RUN_EXAMPLES, str(everything), *examples], tmp_path, everything)


@pytest.mark.parametrize("check", CHECKED)
def test_all_sections_together_keep_the_rules_of_the_repository(check, everything):
    run(["-m", *CHECKED[check]], everything, everything)


def test_a_step_is_run_with_each_addition(everything, tmp_path):
    """The example of the quick experiment then reads its results."""
    run([str(everything / "tests" / "docs" / "all_recipes.py")], tmp_path, everything)
    printed = run(["-c", without_a_file(QUICK)["python"]], tmp_path, everything)
    for method in ("shifted", "udlm"):
        assert re.search(rf"^{method} +4.0 +[0-9.]+ +[0-9.]+$", printed, re.MULTILINE)


@pytest.mark.workflow
def test_a_new_kind_of_data_goes_to_a_report_and_samples(everything):
    """By the commands of the page, in the clone, on the numbers that its example has written."""
    blocks = without_a_file(KIND)
    run(["-c", blocks["python"]], everything, everything)
    said = {}
    for line in blocks["sh"].splitlines():
        _, command, *arguments = line.split()
        arguments += {"estimate": ["--recorded"], "run": ["--cores", "1"]}.get(command, [])
        said[command] = run(["-m", "pairflow", command, *arguments], everything, everything)
    assert re.search(r"^to do +6 of 6 jobs$", said["estimate"], re.MULTILINE)
    check_report((everything / "results" / "barcodes" / "report.html").read_text(encoding="utf-8"))
    numbers = (everything / "new_numbers.txt").read_text().split()
    assert len(set(numbers)) == len(numbers) == 20
    assert all(re.fullmatch(r"[0-9]{4}", number) for number in numbers)
    assert (everything / "scores.csv").read_text().count("\n") == 21


def check_report(page: str) -> None:
    """The head of the page, its floor, and a picture of samples."""
    best = r"For udlm at 8 sampling steps, the readable share is 0\.\d+"
    assert re.search(rf"{best}; for real rows it is 1\.0", page)
    assert "The dotted line is the floor, the value of real barcodes: readable share 1.0" in page
    assert re.search(r'<img class="pixels" src="data:image/png;[^"]+" alt="The rows of udlm, 8 steps"', page)
