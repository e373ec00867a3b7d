"""The notebooks run, with few iterations; they are stored without outputs, and name their address."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pairflow.cli import main

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def command(words: str) -> None:
    main(shlex.split(words), standalone_mode=False)


def run(name: str) -> dict[str, Any]:
    """Execute the code of a notebook, and return its variables."""
    made: dict[str, Any] = {"__name__": name, "command": command}
    for cell in json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = re.sub(r"""(iterations"?[=:] ?)\d+""", r"\g<1>20", "".join(cell["source"]))
            code = code.replace("1_000, nfe", "100, nfe").replace("[:50]", "[:8]")
            exec(re.sub(r"^!pairflow (.*)$", r"command('''\1''')", code, flags=re.MULTILINE), made)
    return made


def test_tokens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = run("tokens")
    far, matched, near = ((x0 != made["tokens"]).mean() for x0 in made["couplings"].values())
    assert max(matched, near) < far
    assert made["shares"].shape == (4, 3)
    score = made["models"]["pairflow"].score
    assert score(made["tokens"][:4]).nll_bound.mean() < score(made["noise"][:4]).nll_bound.mean()
    assert Path("walks/model.safetensors").exists()


def test_molecules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = run("molecules")
    assert (len(made["amides"]), len(made["drawn"])) == (182, 64)
    assert '"drawings"' in Path("new.html").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stored_without_outputs_and_names_its_address(name):
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert text.count(f"/docs/notebooks/{name}.ipynb)") == 1
    assert "[![Open in Colab](" in text
