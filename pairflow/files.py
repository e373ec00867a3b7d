"""A user's files: checks of paths, and reading of regular files, compressed or not, of limited size.

Decompression is limited, too, because a few bytes can expand to gigabytes.
"""

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pairflow.errors import InputError

_LONGEST = 200  # characters of a value that a message shows
MOST_JSON = 2**26  # bytes of a JSON file; the vocabulary of BERT has less than 1 % of this
DEEPEST_JSON = 64  # levels of nesting; files of pairflow have less than a tenth of this


def read_bytes(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raise InputError for anything else.

    A pipe is refused because opening it would block, and a device such as /dev/zero because it has no end.
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
    """Return the UTF-8 text of a file, with \\n as line ends. The file is read by `read_bytes`."""
    try:
        return unify_line_ends(read_bytes(path, most).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, but byte {error.start:,} is not UTF-8") from None


def unify_line_ends(text: str) -> str:
    r"""Return a text in which each line end, which is \n, \r\n or \r, is \n."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text, which end in \n, \r\n or \r. Unlike `str.splitlines` it leaves form feeds,
    U+2028 and the like inside the lines, as editors and `wc -l` do."""
    return unify_line_ends(text).removesuffix("\n").split("\n") if text else []


def require_regular(path: Path) -> None:
    """Raise InputError unless `path` is a regular file, or a link to one."""
    if not checked_path("file", path).is_file():
        is_there = "is a folder, a pipe or a device, expected a file"
        raise InputError(f"{path}: {is_there if path.exists() else 'no such file'}")


def checked_path(name: str, value: Any) -> Path:
    """Return `value`, the argument `name`, as a path. Raise InputError if it cannot be a path."""
    try:
        path = Path(value)
        os.fsencode(path)
        path.exists()
    except (TypeError, ValueError, OSError) as error:  # such as a name that is too long
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{name}: expected a path, found {shown(value)}: {reason}") from None
    if "\0" in str(path) or not str(value):
        raise InputError(f"{name}: expected a path, found {shown(value)}")
    return path


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened for a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def escaped(text: str) -> str:
    """The text with line ends and control characters escaped: names of files may have them."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in an untrusted file.

    Raises OSError if the file cannot be read, and ValueError if it is not a JSON object, if it is larger than
    MOST_JSON (checked before reading), or if it has more than DEEPEST_JSON levels, too many to be written
    again.
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
    """Return the path with its links resolved. Raise InputError if the links form a circle."""
    try:
        return path.resolve()
    except RuntimeError:
        raise InputError(f"{path}: its symbolic links lead around in a circle") from None


def require_file(option: str, path: Path) -> None:
    """Raise InputError if `path`, given by `option`, has no file name, or exists and is no regular file."""
    if not path.name:
        raise InputError(f"{option}: '{path}' is not the name of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path}: is there and is not a regular file; choose another name")


def require_folder(option: str, path: Path) -> None:
    """Raise InputError if `path`, given by `option`, exists and is not a folder."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{option} {path}: is there and is no folder; choose another name")


def require_apart(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """Raise InputError if an output is also an input or another output, or is inside another output.

    `outputs` maps options, which the message names, to paths.
    """
    read = {resolved(path) for path in inputs}
    written = {option: resolved(path) for option, path in outputs.items()}
    for option, path in written.items():
        if path in read:
            raise InputError(f"{option} {outputs[option]}: is an input of this command; choose another name")
        for other, folder in written.items():
            if other != option and path.is_relative_to(folder):
                raise InputError(f"{option} and {other}: expected different outputs, found {outputs[option]}")


RATIO = 100  # largest ratio of decompressed to compressed size; an Excel file of 100,000 equal rows has 14
FREE = 2**24  # bytes up to which the ratio does not matter


def require_plausible(path: Path, unpacked: int) -> None:
    """Raise InputError if `unpacked`, the decompressed size of a file in bytes, is implausibly large."""
    size = path.stat().st_size
    if unpacked > max(FREE, RATIO * size):
        raise InputError(
            f"{path}: expected a file that unpacks to at most {RATIO} times its {size:,} bytes, found "
            f"{unpacked:,} or more"
        )


class GzipFile(gzip.GzipFile):
    """Decompresses a gzip file; reading raises InputError as soon as the file is implausibly large."""

    def __init__(self, path: Path, raw: Any):
        super().__init__(fileobj=raw)
        self.path = path

    def read1(self, size: int = -1) -> bytes:
        content = super().read1(size)
        require_plausible(self.path, self.tell())
        return content


def gunzip(path: Path) -> bytes:
    """Return the decompressed content of a gzip file. Raise InputError if it is implausibly large."""
    with path.open("rb") as raw, GzipFile(path, raw) as packed:
        return b"".join(iter(lambda: packed.read1(FREE), b""))
