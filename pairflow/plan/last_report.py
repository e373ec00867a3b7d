"""Keeps the last report of an experiment until the next is complete: Snakemake deletes it before a new one.

The copy is beside the report, in hard links. A killed run leaves it there, and the next run restores it.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_COPY = ".last_report"


def keep(root: Path, files: Iterable[Path]) -> None:
    """Copy the report's files and folders, which are in the folder `root` of an experiment."""
    restore(root)
    with suppress(OSError):  # where nothing can be written, Snakemake says so
        for path in files:
            if path.is_dir():
                shutil.copytree(path, root / _COPY / path.name, copy_function=_link)
            elif path.exists():
                (root / _COPY).mkdir(exist_ok=True)
                _link(path, root / _COPY / path.name)


def restore(root: Path) -> bool:
    """Put back files of the report that are missing, and remove the copy; return whether any was."""
    missing = [path for path in (root / _COPY).glob("*") if not (root / path.name).exists()]
    for path in missing:
        path.rename(root / path.name)
    forget(root)
    return bool(missing)


def forget(root: Path) -> None:
    """Remove the copy of the report."""
    shutil.rmtree(root / _COPY, ignore_errors=True)


def _link(file: str | Path, new: str | Path) -> None:
    """Give a file a second name. Steps replace files, and never change one."""
    try:
        os.link(file, new)
    except OSError:  # a disk without hard links
        shutil.copy2(file, new)
