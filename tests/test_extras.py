"""A small installation pairs; what it lacks is named with the command that installs it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest

from pairflow.errors import InputError
from pairflow.extras import EXTRAS, named_extras

REPOSITORY = Path(__file__).parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
MODULES = {"pillow": "PIL", "pytorch_fid": "pytorch_fid"}
PAIRING = """
import numpy as np, pairflow
x1 = np.load("rows.npy")
x0 = pairflow.pair(x1, vocabulary_size=5, progress=False)
pairflow.write_pairs(x0, x1, "pairs.parquet", vocabulary_size=5)
print(x0.shape)
"""
# None stands for a package that cannot be imported.
HIDING = "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')))\n"
COMMANDS = {  # the extra that each command needs first
    "score a.smi --model qm9 --out x.csv": "train",
    "sample --model qm9 --count 2 --nfe 1 --out x.smi": "train",
    "run demo --cores 1": "workflow",
    "metrics a.smi --reference a.smi": "molecules",
}


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def small(tmp_path):
    """Function that runs code in a folder with rows of tokens, where the packages of extras are hidden."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 5, (20, 6)))
    (tmp_path / "a.smi").write_text("CCO\n")
    shutil.copy(REPOSITORY / "workflow_config.yaml", tmp_path)
    hidden = ",".join(module for modules in EXTRAS.values() for module in modules)

    def start(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-c", HIDING + code, hidden, *arguments, folder=tmp_path)

    return start


def test_pairing_where_all_other_packages_are_hidden(small):
    finished = small(PAIRING)
    assert finished.stdout == "(20, 6)\n", finished.stderr
    words = ["pair", "--tokens", "rows.npy", "--vocabulary-size", "5", "--out", "made.parquet"]
    finished = small("from pairflow.cli import main; main()", *words)
    assert finished.returncode == 0, finished.stderr
    assert small("from pairflow.cli import main; main()", "--help").returncode == 0


@pytest.mark.parametrize(("words", "extra"), COMMANDS.items())
def test_a_command_names_what_installs_the_hidden_package_that_it_needs(small, words, extra):
    finished = small("from pairflow.cli import main; main()", *words.split())
    assert finished.returncode == 2
    line = rf'pairflow \w+: error: needs \w+, which is not installed: pip install "pairflow\[{extra}\]"\n'
    assert re.fullmatch(line, finished.stderr), finished.stderr


def test_a_function_names_it_too(small):
    finished = small("import pairflow; pairflow.load('qm9')")
    assert 'InputError: needs torch, which is not installed: pip install "pairflow[train]"' in finished.stderr


def test_other_missing_modules_are_errors_of_the_code():
    with pytest.raises(ModuleNotFoundError), named_extras():
        import absent_of_all  # noqa: F401
    with pytest.raises(InputError, match=r"^needs rdkit, .*pairflow\[molecules\]"), named_extras():
        raise ModuleNotFoundError("No module named 'rdkit.Chem'", name="rdkit.Chem")


def test_the_modules_of_each_extra_are_those_of_its_packages():
    for extra, modules in EXTRAS.items():
        names = [re.match(r"[\w-]+", one)[0] for one in PROJECT["optional-dependencies"][extra]]
        packages = [name.replace("-", "_") for name in names if name != "pairflow"]
        own = [name for name in modules if name != "markupsafe"]
        assert [MODULES.get(name, name) for name in packages] == own


@pytest.mark.skipif(
    "PAIRFLOW_ENVIRONMENTS" not in os.environ, reason="installs packages: PAIRFLOW_ENVIRONMENTS=1"
)
@pytest.mark.parametrize("extra", ["", "train", "workflow", "molecules", "images", "text", "all"])
def test_a_fresh_environment(tmp_path, extra, capsys):
    """With the packages of one extra, from the network: what works, and what is named."""
    venv.create(tmp_path / "environment", with_pip=True)
    python, folder = tmp_path / "environment/bin/python", tmp_path
    wanted = f"{REPOSITORY}[{extra}]" if extra else REPOSITORY
    installed = run(python, "-m", "pip", "install", "--quiet", wanted, folder=folder)
    assert installed.returncode == 0, installed.stderr
    np.save(folder / "rows.npy", np.random.default_rng(0).integers(0, 5, (20, 6)))
    (folder / "a.smi").write_text("CCO\n")
    shutil.copy(REPOSITORY / "workflow_config.yaml", folder)
    assert run(python, "-c", PAIRING, folder=folder).stdout == "(20, 6)\n"
    has = {"train": ["train"], "workflow": ["train", "workflow"], "molecules": ["molecules"]}.get(extra, [])
    has = [*COMMANDS.values()] if extra == "all" else has
    for words, needed in COMMANDS.items():
        finished = run(python, "-m", "pairflow", *words.split(), folder=folder)
        assert (f"pairflow[{needed}]" in finished.stderr) is (needed not in has), finished.stderr
        assert "Traceback" not in finished.stderr
    size = sum(path.lstat().st_size for path in (tmp_path / "environment").rglob("*"))
    with capsys.disabled():
        print(f"\npairflow[{extra}]: {size / 1e6:,.0f} MB")
