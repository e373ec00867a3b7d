"""docs/extending.md, done: each section's changes on a copy of the package, and its example run there."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
BLOCK = re.compile(
    r'^(?P<indent> *)```(?P<kind>\w+)(?: title="(?P<path>[^"]+)")?\n(?P<body>.*?)^ *```$', re.M | re.S
)


def apply_diff(path: Path, body: str) -> None:
    """Replace the lines of a diff block, which must stand in the file once, by the new ones."""
    lines = body.replace("... ", "").splitlines()
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: expected once, found {text.count(old)} times:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_sections_are_those_that_contributors_ask_for():
    topics = ("network", "sampler", "base method", "distillation", "data set", "metric")
    assert list(SECTIONS) == [f"A {topic}" for topic in topics]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_example_works(section, tmp_path):
    if section == "A data set" and not (ROOT / "pairflow" / "data" / "molecule_sources.py").exists():
        pytest.skip("needs the data sets as objects")
    package = tmp_path / "copy" / "pairflow"
    shutil.copytree(ROOT / "pairflow", package, ignore=shutil.ignore_patterns("__pycache__"))
    examples = []
    for match in BLOCK.finditer(SECTIONS[section]):
        body = textwrap.dedent(match["body"]) if match["indent"] else match["body"]
        if match["path"] is None:
            examples.append(body)
            continue
        path = package.parent / match["path"]
        if match["kind"] == "diff":
            apply_diff(path, body)
        else:
            assert not path.exists(), f"{match['path']}: not a new file"
            path.write_text(body, encoding="utf-8")
    (example,) = examples
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [
        sys.executable,
        "-c",
        f"import pairflow; assert {str(package)!r} in pairflow.__file__\n{example}",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
