"""A user's own folder of images or of text: its files, and a digest of them."""

import hashlib
from pathlib import Path
from typing import Literal

from pairflow.errors import InputError

_KINDS = {"images": ("PNG or JPEG", {".png", ".jpg", ".jpeg"}), "text": (".txt", {".txt"})}
Kind = Literal["images", "text"]


def files(folder: str | Path, kind: Kind) -> list[Path]:
    """The files of a kind below a folder, sorted by their path in it; InputError if there are none."""
    root, (name, suffixes) = Path(folder), _KINDS[kind]
    if not root.is_dir():
        raise InputError(f"{folder}: no such folder")
    paths = [path for path in root.rglob("*") if path.suffix.lower() in suffixes and path.is_file()]
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    if not paths:
        raise InputError(f"{folder}: no {name} files below it")
    return paths


def listing(folder: str | Path, kind: Kind) -> str:
    """A digest of the names, sizes and times of the files; empty if there are none."""
    try:
        paths = files(folder, kind)
    except InputError:  # which the step reports
        return ""
    content = hashlib.sha256()
    for path in paths:
        status = path.stat()
        content.update(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return content.hexdigest()
