"""The lock, the conda file and pyproject.toml agree, and so do the versions of the pre-commit hooks."""

import re
import tomllib
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parent.parent
LOCK = (REPOSITORY / "envs/requirements.txt").read_text()
PINS = set(re.findall(r"^[\w.-]+==\S+", LOCK, re.M))  # of a package one per range of Python versions


def test_the_conda_file_pins_every_dependency_as_the_lock_does():
    dependencies = yaml.safe_load((REPOSITORY / "envs/cpu.yaml").read_text())["dependencies"]
    pins = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    assert len(pins) > 15
    assert set(pins) <= PINS
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    required = {re.match(r"[\w.-]+", requirement)[0] for requirement in project["dependencies"]}
    assert required <= {pin.partition("==")[0] for pin in pins}


def test_the_lock_pins_hashes_and_names_no_address():
    assert "://" not in LOCK
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert all("--hash=sha256:" in entry for entry in entries)


def test_pre_commit_runs_the_ruff_of_the_lock():
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]
    ruff = next(hook["rev"] for hook in hooks if hook["repo"].endswith("/ruff-pre-commit"))
    assert f"ruff=={ruff.removeprefix('v')}" in PINS
