"""The wheel carries the workflow, `pairflow init` makes a project of it, and the catalogue finds it."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from pairflow._version import __version__

REPOSITORY = Path(__file__).parent.parent
pytestmark = pytest.mark.workflow
BUILD = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def run(*command: object, cwd: Path) -> str:
    """Output of a command that succeeds; it sees no module of this checkout by PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PAIRFLOW_DATA_DIR"] = ""
    words = [*map(str, command)]
    finished = subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=environment)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    """Repository -> source distribution -> wheel, built as pip builds them, without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-c", BUILD, folder, cwd=source)
    archive = folder / f"pairflow-{__version__}.tar.gz"
    offline = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", *offline, archive, cwd=folder)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Python of an environment with this wheel, which borrows pairflow's dependencies from the tests' own.

    A .pth file adds a folder of packages without reading the .pth files in it, so that an editable
    installation of pairflow there stays invisible.
    """
    return installed(tmp_path_factory.mktemp("environment"), wheel)


def installed(folder: Path, *what: object) -> Path:
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin/python"
    [own] = folder.glob("lib/python*/site-packages")
    borrowed = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (own / "dependencies.pth").write_text("\n".join(borrowed))
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--ignore-installed", "--no-build-isolation", *what, cwd=folder)
    return python


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the repository in a folder of its name, as a clone is."""
    copy = tmp_path_factory.mktemp("source") / "pairflow"
    unwanted = (".*", "results", "build", "site", "*.egg-info", "__pycache__", "tests", "benchmarks")
    return shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*unwanted))


def test_the_wheel_holds_the_package_the_workflow_and_the_licences(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "pairflow").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package <= names
    rules = {f"pairflow/workflow/rules/{path.name}" for path in (REPOSITORY / "rules").glob("*.smk")}
    single = ("Snakefile", "workflow_config.yaml", "profiles/slurm/config.yaml", "envs/cpu.yaml")
    assert rules | {f"pairflow/workflow/{name}" for name in single} <= names
    assert {f"pairflow-{__version__}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "setup"))]


def test_a_project_of_the_wheel_runs_the_workflow(python, tmp_path):
    command = python.parent / "pairflow"
    assert "pairflow run demo" in run(command, "init", "my_project", cwd=tmp_path)
    project = tmp_path / "my_project"
    where = run(python, "-c", "import pairflow; print(pairflow.__file__)", cwd=project)
    assert where.startswith(str(python.parent.parent))

    snakemake = (python, "-m", "snakemake", "--cores", "1")
    plan = run(*snakemake, "--dry-run", "results/demo/report.html", cwd=project)
    assert "rule report:" in plan
    target = project / "results/demo/data/train.parquet"
    run(*snakemake, target.relative_to(project), cwd=project)
    assert target.exists()


def test_an_editable_installation_is_found_from_the_folder_that_contains_the_clone(source, tmp_path):
    python = installed(tmp_path / "environment", "--editable", source)
    code = "import pairflow; print(pairflow.__file__, pairflow.InputError)"
    found = run(python, "-c", code, cwd=source.parent)
    assert found == f"{source}/pairflow/__init__.py <class 'pairflow.errors.InputError'>\n"
    assert run(python, "-m", "pairflow", "--help", cwd=source.parent).startswith("Usage: pairflow [OPTIONS]")


CATALOGUE = ("--snakefile", str(REPOSITORY / "workflow/Snakefile"))


def test_the_workflow_catalogue_plans_the_repositorys_configuration_in_any_folder(snakemake, tmp_path):
    (tmp_path / "empty").mkdir()
    plan = snakemake(tmp_path, *CATALOGUE, "--directory", "empty", "--dry-run")
    assert plan.returncode == 0, plan.stderr
    assert "rule preprocess_molecules:" in plan.stdout
    assert "rule describe_molecules:" in plan.stdout  # in a file of its kind
    assert "results/demo/report.html" in plan.stdout
    assert "pairflow+dcd" in plan.stdout  # a method of the repository's demo
    assert not list(tmp_path.glob("*.yaml"))
    usage = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["report"] is True
    assert (REPOSITORY / "config/README.md").exists()


def test_the_workflow_catalogue_runs_the_small_configuration(snakemake, tmp_path):
    made = shutil.ignore_patterns("results", ".snakemake")
    shutil.copytree(REPOSITORY / ".test", tmp_path / ".test", ignore=made)
    catalogue = (*CATALOGUE, "--directory", ".test")
    run = snakemake(tmp_path, *catalogue, "--until", "pair")
    assert run.returncode == 0, run.stderr
    results = tmp_path / ".test/results/demo"
    assert len(pd.read_parquet(results / "seed0/pairs/pairflow.parquet")) == 327
    assert [path.name for path in tmp_path.iterdir()] == [".test"]
    plan = snakemake(tmp_path, *catalogue, "--dry-run")
    assert "rule train:" in plan.stdout
    assert "rule pair:" not in plan.stdout


def test_the_citation_names_this_version():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert "2512.20063" in citation["preferred-citation"]["url"]
