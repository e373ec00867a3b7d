"""A user's files: valid names, and regular files of a bounded size, read whole."""

import os
from pathlib import Path
from typing import Any

from pairflow.errors import InputError

_LONGEST = 200  # characters of a value in a message


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes; InputError for anything else.

    A pipe would block whoever opens it, and a device such as /dev/zero has no end.
    """
    try:
        require_regular(path)
        size = path.stat().st_size
        if size > most:
            raise InputError(f"{path}: {size:,} bytes are more than the {most:,} that such a file may have")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def read_text(path: Path, most: int) -> str:
    """The UTF-8 text of such a file; every line ends in \\n."""
    try:
        return read_bytes(path, most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, but byte {error.start:,} is none") from None


def require_regular(path: Path) -> None:
    """InputError unless `path` is a regular file, or a link to one."""
    if not checked_path("file", path).is_file():
        is_there = "is a folder, a pipe or a device, expected a file"
        raise InputError(f"{path}: {is_there if path.exists() else 'no such file'}")


def checked_path(name: str, value: Any) -> Path:
    """`value` as the path of a file or folder, which need not be there; InputError begins with `name`."""
    try:
        path = Path(value)
        os.fsencode(path)
        path.exists()
    except (TypeError, ValueError, OSError) as error:  # a name that is too long, or has no bytes
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{name}: expected a path, found {_start(value)}: {reason}") from None
    if "\0" in str(path) or not str(value):
        raise InputError(f"{name}: expected a path, found {_start(value)}")
    return path


def _start(value: Any) -> str:
    """A value as Python writes it, shortened."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
