"""The environments say the same: lock, conda file and pyproject.toml."""

import re
import tomllib
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parent.parent


def locked() -> dict[str, set[str]]:
    """Package -> pinned versions (one per range of Python versions)."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)", (REPOSITORY / "envs/requirements.txt").read_text(), re.M
    ):
        pins.setdefault(name, set()).add(version)
    return pins


def test_every_pin_of_the_conda_file_is_one_of_the_lock():
    dependencies = yaml.safe_load((REPOSITORY / "envs/cpu.yaml").read_text())["dependencies"]
    pins = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    assert len(pins) > 15
    for pin in pins:
        name, version = pin.split("==")
        assert version in locked()[name], pin


def test_the_lock_and_the_conda_file_hold_all_that_the_project_asks_for():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    conda = (REPOSITORY / "envs/cpu.yaml").read_text()
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["workflow"]]:
        name = re.match(r"[\w.-]+", requirement)[0]
        assert name in locked()
        assert f"- {name}==" in conda


def test_the_lock_is_pinned_by_hash_and_names_no_address():
    text = (REPOSITORY / "envs/requirements.txt").read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)
