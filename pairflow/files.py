"""A user's files: checks of paths, and reading of regular files, compressed or not, of limited size.

Decompression is limited, too, because a few bytes can expand to gigabytes.
"""

import bz2
import gzip
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO

from pairflow.errors import InputError

_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # how a byte that is not UTF-8 is decoded
_BATCH = 2**16  # characters of lines that are read at a time
_LONGEST = 200  # characters of a value that a message shows
MOST_JSON = 2**26  # bytes of a JSON file; the vocabulary of BERT has less than 1 % of this
DEEPEST_JSON = 64  # levels of nesting; files of pairflow have less than a tenth of this
_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.I | re.S
)
Json = dict[str, Any]  # the content of a JSON object


def read_bytes(path: Path, most: int) -> bytes:
    """Return the content of a regular file, decompressed if its suffix is .gz, .bz2, .zst or .zip. Raise
    InputError for anything else, and for a file of more than `most` bytes.

    A pipe is refused because opening it would block, and a device such as /dev/zero because it has no end.
    """
    try:
        require_regular(path)
        size = path.stat().st_size
        if size > most:
            raise InputError(f"{path}: {size:,} bytes are more than the {most:,} that such a file may have")
        if path.suffix.lower() not in PACKED:
            return path.read_bytes()
        with opened(path, "text") as (content, _):
            return content.read()
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
    """Raise InputError unless `path` is a regular file, or a link to one, that can be read, is not empty and
    is no failed download."""
    if not checked_path("file", path).is_file():
        is_there = "is a folder, a pipe or a device, expected a file"
        raise InputError(f"{path}: {is_there if path.exists() else 'no such file'}")
    if reason := fault(path):
        raise InputError(f"{path}: {reason}")


def fault(path: Path) -> str:
    """Return why a file cannot be used, and the remedy: it cannot be read, is empty, or is a download that
    went wrong. The text is empty if nothing is wrong, or if this is no regular file."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not head:
        return "empty; copy or download the file again"
    if head.startswith(_POINTER):
        return "a Git LFS pointer instead of the file itself; run `git lfs pull` where it was cloned"
    if _PAGE.match(head):
        return "a web page (HTML), not the file itself; download the file again, by its direct address"
    return ""


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is a system's or a program's own, such as ._a.png,
    .DS_Store, .ipynb_checkpoints or __MACOSX, and not the user's data."""
    return name.startswith(".") or name == "__MACOSX"


def checked_path(name: str, value: str | os.PathLike[str]) -> Path:
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


def shown(value: object) -> str:
    """Return the `repr` of a value, shortened for a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def escaped(text: str) -> str:
    """Return the text with line ends and control characters escaped: names of files may have them."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def read_object(path: Path) -> Json:
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
    level: list[object] = [facts]
    for _ in range(DEEPEST_JSON):
        level = [value for each in level for value in _members(each)]
    if level:
        raise ValueError("nested too deeply")
    return facts


def _members(value: object) -> Iterable[object]:
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


PACKED = (".gz", ".bz2", ".zst", ".zip")  # suffixes of compressed files that `opened` reads


def bare_name(path: Path) -> str:
    """Return the name of a file without the suffix of its compression."""
    return path.stem if path.suffix.lower() in PACKED else path.name


def suffix_of(path: Path) -> str:
    """Return the suffix of a file in lower case; of a compressed file the suffix of its content."""
    name = bare_name(path)
    if path.suffix.lower() == ".zip" and path.is_file():
        with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            name = _only_member(path, archive).filename
    return Path(name).suffix.lower()


@contextmanager
def opened(path: Path, what: str) -> Iterator[tuple[io.BufferedReader, BinaryIO]]:
    """Open a regular file, and decompress it if its suffix is .gz, .bz2, .zst or .zip.

    Yields the content, and the file as it is on disk, whose position says how much is read. `what` is
    expected in the file, such as "CSV", for messages. Raises InputError if the file cannot be read, also
    within the block, and for UTF-16 text.
    """
    require_regular(path)
    try:
        with path.open("rb") as raw:
            content = _content(path, raw)
            if content.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise InputError(f"{path}: is UTF-16 text; save it as UTF-8")
            yield content, raw
    except OSError as error:
        raise InputError(f"{path}: not a readable {what} file: {error}") from None


def _content(path: Path, raw: io.BufferedReader) -> io.BufferedReader:
    """Return the content of an open file, decompressed if the suffix of `path` is that of a compressed file.
    Raises OSError for a damaged archive, or one with a password."""
    suffix = path.suffix.lower()
    if suffix not in PACKED:
        return raw
    source: io.BufferedIOBase | IO[bytes]
    try:
        if suffix == ".gz":
            source = gzip.GzipFile(fileobj=raw)
        elif suffix == ".bz2":
            source = bz2.BZ2File(raw)
        elif suffix == ".zst":
            import pyarrow

            source = pyarrow.CompressedInputStream(raw, "zstd")
        else:
            archive = zipfile.ZipFile(raw)
            source = archive.open(_only_member(path, archive))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # not ZIP, or with a password
        raise OSError(str(error)) from None
    return io.BufferedReader(_Unpacked(path, source), 2**16)


def _only_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only file of an archive that is not hidden; InputError if there is not just one."""
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not any(part[0] in "._" for part in Path(member.filename).parts)
    ]
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:5])
        raise InputError(
            f"{path}: expected one file in the archive, found {len(members)}: {names}; unpack it"
        )
    if Path(name := members[0].filename).suffix.lower() in PACKED:
        raise InputError(f"{path}: expected a file in the archive that is not compressed again, found {name}")
    return members[0]


class _Unpacked(io.RawIOBase):
    """Decompressed content. Reading raises InputError if it is implausibly large, OSError if damaged."""

    def __init__(self, path: Path, source: io.BufferedIOBase | IO[bytes]):
        self.path, self.source, self.size = path, source, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self.source.read(len(buffer))
        except Exception as error:  # each format has errors of its own
            raise OSError(str(error)) from None
        self.size += len(content)
        require_plausible(self.path, self.size)
        buffer[: len(content)] = content
        return len(content)


def gunzip(path: Path) -> bytes:
    """Return the decompressed content of a gzip file. Raise InputError if it is implausibly large."""
    with path.open("rb") as raw:
        return _Unpacked(path, gzip.GzipFile(fileobj=raw)).readall()


def lines_of(content: io.BufferedReader, path: Path, longest: int) -> Iterator[str]:
    """Yield the lines of UTF-8 text with their ends, which are \\n, \\r\\n or \\r. Raises InputError for a
    line of `longest` characters, and for a byte that is not UTF-8: its letter could only be guessed."""
    return chain.from_iterable(_batches(content, path, longest))


def _batches(content: io.BufferedReader, path: Path, longest: int) -> Iterator[list[str]]:
    """Yield the lines of a UTF-8 file in lists, because to read them one by one takes several times as long.
    Raises InputError for a line of over `longest` characters, and for other encodings."""
    text = io.TextIOWrapper(content, encoding="utf-8-sig", errors="surrogateescape", newline="")
    number = 1  # of the first line of a batch
    try:
        while batch := text.read(_BATCH):
            batch += text.readline(longest)  # the rest of the last line
            lines = io.StringIO(batch, newline="").readlines()
            if len(batch) >= longest and max(map(len, lines)) >= longest:
                raise InputError(f"{path}: a line of over {longest:,} characters: not a text file")
            if not batch.isascii() and (stray := _NOT_UTF8.search(batch)):
                number += len(re.findall(r"\r\n?|\n", batch[: stray.start()]))
                found = f"byte {ord(stray[0]) - 0xDC00:#04x} in line {number}"
                raise InputError(
                    f"{path}: expected UTF-8 text, found {found}; save it as UTF-8, as by: "
                    "iconv -f WINDOWS-1252 -t UTF-8"
                )
            yield lines
            number += len(lines)
    finally:
        with suppress(ValueError):  # if the file is closed already
            text.detach()  # does not close the file
