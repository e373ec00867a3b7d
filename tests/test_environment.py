"""The lock, the conda file, pyproject.toml and pre-commit agree; what `make` says without a network."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
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
    extras = (project["optional-dependencies"][name] for name in ("train", "workflow", "molecules", "images"))
    needed = [*project["dependencies"], *itertools.chain(*extras)]
    required = {re.match(r"[\w.-]+", requirement)[0] for requirement in needed} - {"pairflow"}
    assert required <= {pin.partition("==")[0] for pin in pins}


@pytest.mark.parametrize("lock", ["envs/requirements.txt", ".github/publish.txt"])
def test_a_lock_pins_hashes_and_names_no_address(lock):
    text = (REPOSITORY / lock).read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)


def test_ci_installs_only_locked_packages_and_its_own_wheel():
    installs = re.findall(r"pip\"? install (.*)", (REPOSITORY / ".github/workflows/ci.yml").read_text())
    assert installs
    assert all(words.startswith("--require-hashes ") or words == "dist/*.whl" for words in installs)


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.cuda"])
def test_a_container_has_a_home_that_only_its_user_may_read(tmp_path, name):
    """The entry point, on the kernels of a folder that stands for the image's."""
    text = (REPOSITORY / "envs" / name).read_text()
    assert not re.search(r"chmod .*(a\+\S*w|o\+\S*w|go=\S*w|777)", text)
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.M)[1])
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba/kernel").write_text("compiled")
    command = [part.replace("/opt/numba", str(tmp_path / "numba")) for part in entry]
    said = 'stat -c %a "$HOME"; cat "${NUMBA_CACHE_DIR:-$HOME}/kernel"; touch "$HOME/mine"; echo "$1"'
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    command += ["sh", "-c", said, "-", "two words"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    compiled = "" if name.endswith("cuda") else "compiled"
    assert run.stdout == f"700\n{compiled}two words\n"


def test_pre_commit_runs_the_ruff_of_the_lock():
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]
    ruff = next(hook["rev"] for hook in hooks if hook["repo"].endswith("/ruff-pre-commit"))
    assert f"ruff=={ruff.removeprefix('v')}" in PINS


def test_a_set_up_without_packages_ends_in_a_line(tmp_path):
    """An index that is not there, in place of a network that is not."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "envs/requirements.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    hidden = ("PIP_", "MAKE", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": (tmp_path / "nowhere").as_uri()}
    command = ["make", "setup", f"PYTHON={sys.executable}"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    line, ending = run.stderr.splitlines()
    assert line.startswith("make: the packages could not be installed (ERROR: No matching distribution found")
    assert line.endswith(", see .venv/install.log); check the network, then run make again")
    assert run.returncode == 2
    assert ending.startswith("make: *** ")
    assert not (tmp_path / ".venv/.ready").exists()
