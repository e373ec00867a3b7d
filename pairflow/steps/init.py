"""Writes a folder in which a user can run the workflow."""

import shlex
import shutil
import tomllib
from pathlib import Path

import click

from pairflow.artifacts import atomic
from pairflow.errors import InputError
from pairflow.steps.command import step

PACKAGE = Path(__file__).parent.parent


@step()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Copy the workflow into FOLDER, so that you can run it and edit its configuration there.

    FOLDER is created if it does not exist; otherwise it must be empty. It receives the Snakefile and its
    rules, workflow_config.yaml and recipes/ with all shipped experiments, profiles for a laptop and SLURM,
    the environment for conda users, and docs/metrics.md. You need this command once per project, after
    `pip install "pairflow[all]"`; a clone of the repository is such a folder already.
    """
    require_empty(folder)
    files = workflow_files()
    with atomic(*(folder / name for name in files)) as copies:
        for source, copy in zip(files.values(), copies, strict=True):
            shutil.copyfile(source, copy)
    enter = "" if folder.resolve() == Path.cwd() else f"  cd {shlex.quote(str(folder))}\n"
    click.echo(
        f"{folder} holds the workflow. Try it on molecules that come with pairflow (a few minutes):\n\n"
        f"{enter}"
        "  pairflow run demo\n\n"
        "`pairflow doctor` checks this machine; `pairflow new my_library.smi` adds your own molecules."
    )


def require_empty(folder: Path) -> None:
    """Raise InputError unless `folder` is absent or a folder without files."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: expected a new or an empty folder, found a file")
    entry = next((path for path in folder.rglob("*") if not path.is_dir()), None)
    if entry:
        raise InputError(
            f"{folder}: expected a new or an empty folder, found {entry.relative_to(folder)} in it"
        )


def workflow_files() -> dict[Path, Path]:
    """Return {path in a project: file of the workflow}, from the installed package or from this clone of the
    repository."""
    root = PACKAGE / "workflow"
    names = ["."]
    if not root.is_dir():
        root = PACKAGE.parent
        names = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["pairflow"]["workflow"]
    paths = [path for name in names for path in (root / name, *(root / name).rglob("*"))]
    return {path.relative_to(root): path for path in paths if path.is_file()}


if __name__ == "__main__":
    main()
