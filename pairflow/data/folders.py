"""A user's own folder of images or of text: its files, and a digest of them."""

import hashlib
from collections.abc import Collection
from pathlib import Path

from pairflow.errors import InputError


def files(folder: str | Path, name: str, suffixes: Collection[str]) -> list[Path]:
    """The files with these suffixes below a folder, sorted by their path in it; InputError if there are none.

    `name` is what they are called in its message.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{folder}: no such folder")
    paths = [path for path in root.rglob("*") if path.suffix.lower() in suffixes and path.is_file()]
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    if not paths:
        raise InputError(f"{folder}: no {name} files below it")
    return paths


def listing(folder: str | Path, name: str, suffixes: Collection[str]) -> str:
    """A digest of the names, sizes and times of the files; empty if there are none."""
    try:
        paths = files(folder, name, suffixes)
    except InputError:  # which the step reports
        return ""
    content = hashlib.sha256()
    for path in paths:
        status = path.stat()
        content.update(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return content.hexdigest()
