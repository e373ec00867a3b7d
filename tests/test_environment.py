"""The lock, the conda file and pyproject.toml agree, and so do the versions of the pre-commit hooks."""

import re
import tomllib
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parent.parent


def locked_versions() -> dict[str, set[str]]:
    """Package -> its pinned versions; there may be one per range of Python versions."""
    versions: dict[str, set[str]] = {}
    text = (REPOSITORY / "envs/requirements.txt").read_text()
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.M):
        versions.setdefault(name, set()).add(version)
    return versions


def test_the_conda_file_pins_versions_of_the_lock():
    dependencies = yaml.safe_load((REPOSITORY / "envs/cpu.yaml").read_text())["dependencies"]
    pins = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    assert len(pins) > 15
    for pin in pins:
        name, version = pin.split("==")
        assert version in locked_versions()[name], pin


def test_the_lock_and_the_conda_file_hold_every_dependency():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    conda = (REPOSITORY / "envs/cpu.yaml").read_text()
    for requirement in project["dependencies"]:
        name = re.match(r"[\w.-]+", requirement)[0]
        assert name in locked_versions()
        assert f"- {name}==" in conda


def test_the_lock_pins_hashes_and_names_no_address():
    text = (REPOSITORY / "envs/requirements.txt").read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)


def test_pre_commit_runs_the_ruff_of_the_lock():
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]
    ruff = next(hook["rev"] for hook in hooks if hook["repo"].endswith("/ruff-pre-commit"))
    assert ruff.removeprefix("v") in locked_versions()["ruff"]
