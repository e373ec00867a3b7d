"""Files that appear whole or not at all: written beside, flushed to disk, then moved into place."""

import errno
import fcntl
import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pairflow.errors import InputError


@contextmanager
def atomic(*paths: Path) -> Iterator[list[Path]]:
    """Temporary names beside `paths`: all moved into place if the block succeeds, else all removed.

    A link stays, and the file that it leads to is replaced; a replaced file keeps its permissions.
    InputError names a disk that is full or read-only. Leftovers of killed processes are removed.
    """
    paths = tuple(path.resolve() if path.is_symlink() else path for path in paths)
    temporary = [_temporary(path) for path in paths]
    try:
        with _disk_named(paths[0]):
            for path in paths:
                _make_place(path)
            yield temporary
            for part in temporary:
                _flush(part)
            for part, path in zip(temporary, paths, strict=True):
                part.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
                part.replace(path)
    finally:
        for part in temporary:
            with suppress(OSError):  # missing, or on a read-only disk
                part.unlink()


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """The block has the file `path` to itself, among those who ask: others wait for it to end."""
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that replaces it if the block succeeds; otherwise like `atomic`."""
    temporary = _temporary(path)
    before = temporary.with_suffix(".old")
    try:
        with _disk_named(path):
            _make_place(path)
            temporary.mkdir()
            yield temporary
            for part in temporary.rglob("*"):
                _flush(part)
            if path.is_dir():
                path.replace(before)
            try:
                temporary.replace(path)
            except OSError:
                if before.is_dir():
                    before.replace(path)
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)


def _make_place(path: Path) -> None:
    """Make the folder of `path`, and remove what ended processes have left beside it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}, {disk_of(path)}") from error
    _remove_orphans(path)


def _temporary(path: Path) -> Path:
    """A name beside `path` that only this process uses, also where containers share name and numbers."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def _disk_named(path: Path) -> Iterator[None]:
    """InputError that names the file and the disk if the system refuses to write."""
    try:
        yield
    except Exception as error:
        if reason := _why_not_written(error):
            raise InputError(f"{path}: cannot be written: {reason}, {disk_of(path)}") from error
        raise


def _remove_orphans(path: Path) -> None:
    """Remove the temporary files or folders of `path` that ended processes of this machine have left."""
    name = re.compile(re.escape(f".{path.name}.{platform.node()}.") + r"(\d+)(-\w+)?\.(partial|old)")
    for part in path.parent.iterdir():
        match = name.fullmatch(part.name)
        if not match or _runs(int(match[1])):
            continue
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


def _why_not_written(error: Exception) -> str | None:
    """The system's message if it refuses to write; safetensors has the error number in its text."""
    match = re.search(r"os error (\d+)", str(error))
    number = int(match[1]) if match else getattr(error, "errno", None)
    return os.strerror(number) if number in _REFUSALS else None


def disk_of(path: Path) -> str:
    """The disk that `path` is on, and its free space."""
    place = path.resolve()
    while not place.exists() or not os.path.ismount(place):
        place = place.parent
    return f"disk {place} has {shutil.disk_usage(place).free / 2**20:,.1f} MB free"


def _umask() -> int:
    """The mask for the permissions of new files, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
