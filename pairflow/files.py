"""A user's files: valid names, and regular files of a bounded size, packed or not, read whole.

A packed file is unpacked to no more than data have: a few bytes can stand for gigabytes.
"""

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pairflow.errors import InputError

_LONGEST = 200  # characters of a value in a message
MOST_JSON = 2**26  # bytes; the vocabulary of BERT takes less than a hundredth
DEEPEST_JSON = 64  # levels; what we write is not a tenth as deep


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
        raise InputError(f"{name}: expected a path, found {shown(value)}: {reason}") from None
    if "\0" in str(path) or not str(value):
        raise InputError(f"{name}: expected a path, found {shown(value)}")
    return path


def shown(value: Any) -> str:
    """A value as Python writes it, shortened, for a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file that somebody else may have written; OSError if it cannot be read.

    Raises ValueError if it is no such object, or one of more than MOST_JSON, before memory is taken for it,
    or deeper than DEEPEST_JSON levels, which would stop whoever writes it again.
    """
    size = path.stat().st_size
    require_regular(path)
    if size > MOST_JSON:
        raise ValueError(f"{size / 2**20:,.0f} MiB are more than {MOST_JSON / 2**20:.0f}")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(facts, dict):
        raise ValueError("no JSON object")
    level: list[Any] = [facts]
    for _ in range(DEEPEST_JSON):
        level = [value for each in level for value in _members(each)]
    if level:
        raise ValueError("nested too deeply")
    return facts


def _members(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def resolved(path: Path) -> Path:
    """The path without links; InputError if they lead around in a circle."""
    try:
        return path.resolve()
    except RuntimeError:
        raise InputError(f"{path}: its symbolic links lead around in a circle") from None


def require_file(option: str, path: Path) -> None:
    """InputError if `path` is there and is no regular file: a folder, a device or a pipe."""
    if not path.name:
        raise InputError(f"{option}: '{path}' is not the name of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path}: is there and is not a regular file; choose another name")


def require_folder(option: str, path: Path) -> None:
    """InputError if `path` is there and is no folder."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{option} {path}: is there and is no folder; choose another name")


def require_apart(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """InputError if an output (option -> path) is an input, or is another output or lies in one."""
    read = {resolved(path) for path in inputs}
    places = {option: resolved(path) for option, path in outputs.items()}
    for option, place in places.items():
        if place in read:
            raise InputError(f"{option} {outputs[option]}: is an input of this command; choose another name")
        for other, folder in places.items():
            if other != option and place.is_relative_to(folder):
                raise InputError(f"{option} and {other}: expected different outputs, found {outputs[option]}")


RATIO = 100  # of the sizes unpacked and packed; 100,000 equal rows in an Excel file have 14
FREE = 2**24  # bytes that any file may unpack to


def require_plausible(path: Path, unpacked: int) -> None:
    """InputError if a packed file unpacks to more bytes than data do."""
    size = path.stat().st_size
    if unpacked > max(FREE, RATIO * size):
        raise InputError(
            f"{path}: expected a file that unpacks to at most {RATIO} times its {size:,} bytes, found "
            f"{unpacked:,} or more"
        )


class GzipFile(gzip.GzipFile):
    """The unpacked bytes of a gzipped file; InputError once they are more than data have."""

    def __init__(self, path: Path, raw: Any):
        super().__init__(fileobj=raw)
        self.path = path

    def read1(self, size: int = -1) -> bytes:
        content = super().read1(size)
        require_plausible(self.path, self.tell())
        return content


def gunzip(path: Path) -> bytes:
    """The unpacked content of a gzipped file; InputError as `require_plausible`."""
    with path.open("rb") as raw, GzipFile(path, raw) as packed:
        return b"".join(iter(lambda: packed.read1(FREE), b""))
