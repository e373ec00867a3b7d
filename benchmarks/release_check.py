"""What is still open before a release: versions that differ, models without a licence, addresses to fill in.

python benchmarks/release_check.py        (a part of `make release-check`; docs/releasing.md)
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from pairflow import __version__, published

ROOT = Path(__file__).parents[1]
PLACEHOLDER = re.compile(r"TODO|https://example\.org|<this repository>")
PUBLISHED = ("README.md", "pyproject.toml", "CITATION.cff", "docs/joss/paper.md", "envs/recipe/meta.yaml")
NOTEBOOKS = ("docs/notebooks/tokens.ipynb", "docs/notebooks/molecules.ipynb")  # badges


def main() -> None:
    problems = [*versions(), *licences(), *placeholders()]
    print("\n".join(["still open:", *problems] if problems else ["nothing is open"]))
    sys.exit(bool(problems))


def versions() -> Iterator[str]:
    """The version is the same everywhere, and the changelog has a section for it."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if citation["version"] != __version__:
        yield f"CITATION.cff: version {citation['version']}, expected {__version__}"
    recipe = (ROOT / "envs/recipe/meta.yaml").read_text(encoding="utf-8")
    if f'set version = "{__version__}"' not in recipe:
        yield f"envs/recipe/meta.yaml: expected version {__version__}"
    if f"## [{__version__}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md: no section for {__version__}"


def licences() -> Iterator[str]:
    """NOTICE names all models that come with pairflow."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for name in published.names():
        if not re.search(rf"^pairflow/models/{re.escape(name)}$", notice, re.MULTILINE):
            yield f"NOTICE: does not name pairflow/models/{name}"


def placeholders() -> Iterator[str]:
    """The lines that a person has to fill in."""
    for name in (*PUBLISHED, *NOTEBOOKS):
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if PLACEHOLDER.search(line):
                yield f"{name}, line {number}: {line.strip()}"


if __name__ == "__main__":
    main()
