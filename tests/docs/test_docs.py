"""README and docs: what they name is there, links lead somewhere, examples run, and the site builds."""

import ast
import importlib
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from snakemake.cli import parse_args

import pairflow
from pairflow.cli import COMMANDS, STEPS
from pairflow.config import check
from pairflow.config.configuration import Configuration
from pairflow.config.file import load, read

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("benchmarks/records/*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
FOLDERS = "pairflow|tests|docs|rules|profiles|benchmarks|envs"
GENERATED = {"docs/configuration.md"}  # by docs/hooks.py, when the site is built


def names_of(path: Path) -> set[str]:
    """Functions, classes, methods and assigned names of a module."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


@pytest.mark.parametrize("page", TEXTS)
def test_files_that_a_page_names_are_there(page):
    for name in re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", TEXTS[page]):
        assert (ROOT / name).exists(), f"{page}: no {name}"


def snakemake_options(command: str):
    return parse_args(shlex.split(command, comments=True)[1:])[1]


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if "snakemake --" in text])
def test_snakemake_understands_the_commands_of_a_page(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for command in re.findall(r"(?:^|`)(snakemake -[^`\n]*)", TEXTS[page], re.MULTILINE):
        assert all(target.startswith("results/") for target in snakemake_options(command).targets), command


@pytest.mark.parametrize("page", TEXTS)
def test_functions_and_tests_that_a_page_names_are_there(page):
    text = " ".join(TEXTS[page].split())
    found = re.findall(rf"`((?:{FOLDERS})/[\w./-]+\.py)::(\w+)`", text)
    for path, names in re.findall(
        rf"`((?:{FOLDERS})/[\w./-]+\.py)`(?:\]\([^)]*\))? \(((?:`\w+`(?:, )?)+)\)", text
    ):
        found += [(path, name) for name in re.findall(r"\w+", names)]
    for path, name in found:
        assert name in names_of(ROOT / path), f"{page}: {path} has no {name}"


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    prose = re.sub(r"^ *```.*?^ *```$", "", TEXTS[page], flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", prose):
        path = (ROOT / page).parent / target if target else ROOT / page
        generated = path.resolve().relative_to(ROOT.resolve()).as_posix() in GENERATED
        assert path.exists() or generated, f"{page}: no {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings}


@pytest.mark.parametrize("page", TEXTS)
def test_names_that_a_page_imports_are_there(page):
    if page == "docs/extending.md":
        pytest.skip("test_extending.py runs its examples")
    for module, names in re.findall(r"from (pairflow[\w.]*) import ([\w, ]+)", TEXTS[page]):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), f"{page}: {module} has no {name}"


def test_the_readme_is_short_and_lists_every_command():
    readme = TEXTS["README.md"]
    assert len(readme.split()) <= 900
    for command in (*COMMANDS, *STEPS):
        assert f"`{command}`" in readme, command
        named = rf"`{command}( KIND)?`"
        assert command in COMMANDS or re.search(named, TEXTS["docs/commands.md"]), command


def test_the_first_example_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).integers(40, size=(60, 8))
    np.save("my_tokens.npy", rows)
    (example,) = re.findall(r"```python\n(.*?)```", TEXTS["README.md"], re.DOTALL)
    variables = {}
    exec(example.replace("sources=sources", "sources=sources, iterations=10"), variables)
    assert variables["sources"].shape == rows.shape
    assert variables["rows"].shape == (100, 8)
    assert (tmp_path / "my_model/model.safetensors").is_file()


def test_the_experiment_of_the_page_on_tokens_is_complete():
    [example] = re.findall(r"```yaml\n(experiments:\n.*?)```", TEXTS["docs/tokens.md"], re.DOTALL)
    assert len(example.splitlines()) <= 25
    assert "&" not in example
    experiment = check(Configuration, load(example, Path("mine.yaml")), "docs").experiments["mine"]
    demo = read(ROOT / "workflow_config.yaml").experiments["demo"]
    assert (experiment.training, experiment.network) == (demo.training, demo.network)


def test_every_key_of_the_configuration_is_explained_where_it_first_occurs():
    files = [ROOT / "workflow_config.yaml", *sorted(ROOT.glob("recipes/*.yaml"))]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    seen = {"data", "training", "distillation", "dcd", "redi", *read(files[0]).experiments}
    for above, line in itertools.pairwise(lines):
        keys = set() if line.endswith(":") or "#" in line else set(re.findall(r"(\w+):", line))
        assert above.lstrip().startswith("#") or keys <= seen, f"{keys - seen}: {line}"
        seen |= keys


def test_the_equations_have_their_pointers_and_the_headings_that_modules_cite():
    """Each section points to code and to a test."""
    method = TEXTS["docs/method.md"]
    sections = dict(part.split("\n", 1) for part in method.split("\n## ")[1:])
    for heading, text in sections.items():
        assert "`pairflow/" in text, heading
        assert "`tests/" in text, heading
    for module in sorted((ROOT / "pairflow").rglob("*.py")):
        text = " ".join(module.read_text(encoding="utf-8").split())
        for _, heading in re.findall(r"docs/method\.md, (['\"])(.+?)\1", text):
            assert heading in sections, f"{module}: docs/method.md has no '{heading}'"


def test_every_line_of_an_equation_has_a_row_on_the_site():
    for package in ("mkdocs", "latex2mathml"):
        pytest.importorskip(package)
    hooks = runpy.run_path(str(ROOT / "docs/hooks.py"))
    for page, text in TEXTS.items():
        for latex in hooks["EQUATION"].findall(text):
            mathml = hooks["typeset"](latex)
            assert "<mi>&</mi>" not in mathml, f"{page}: {latex}"
            assert "columnalign" not in mathml, "browsers align columns by their style"
            assert mathml.count("<mtr>") == ("{aligned}" in latex) * (latex.count("\\\\") + 1), (
                f"{page}: {latex}"
            )


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.name: path.read_text() for path in (tmp_path / "site").glob("*.html")}
    for name, page in pages.items():
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', page), name
    for key in ("experiments", "learning_rate", "teacher_every", "multipliers", "nfe", "drop_duplicates"):
        assert f"<code>{key}</code>" in pages["configuration.html"]


def test_the_page_on_metrics_has_the_texts_of_the_metrics():
    """`python docs/metrics.py` writes it again."""
    page, text = runpy.run_path(str(ROOT / "docs/metrics.py")), TEXTS["docs/metrics.md"]
    assert page["write"](text) == text
    assert sorted(re.findall(r"<!--(?!end)(\w+)-->", text)) == sorted(page["PARTS"])


def test_every_paper_of_the_related_work_is_in_the_references():
    references = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),$", references, re.MULTILINE)
    numbers = re.findall(r"eprint = \{([\d.]+)\}", references)
    cited = re.findall(r"^\[(\w+)\]: https://arxiv\.org/abs/([\d.]+)$", TEXTS["docs/related.md"], re.M)
    assert len(keys) == len(numbers) == len(set(keys))
    assert {*zip(keys, numbers, strict=True)} == {*cited, ("park2026", "2512.20063")}


def test_the_stable_names_are_those_of_the_package():
    page = TEXTS["docs/api.md"]
    stable = page[page.index("**Stable**") : page.index("**Provisional**")]
    assert sorted(re.findall(r"`(\w+)`", stable)) == sorted(pairflow.__all__)
