"""Files that appear whole or not at all: written beside, flushed to disk, then moved into place."""

import errno
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pairflow.errors import InputError


@contextmanager
def atomic(*paths: Path) -> Iterator[list[Path]]:
    """Temporary names beside `paths`: all moved into place if the block succeeds, else all removed.

    InputError names the disk that is full or takes no file. What a killed process has left is removed.
    """
    temporary = [_temporary(path) for path in paths]
    try:
        with _disk_named(paths[0]):
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
                _remove_orphans(path)
            yield temporary
            for part in temporary:
                _flush(part)
            for part, path in zip(temporary, paths, strict=True):
                part.chmod(0o666 & ~_umask())  # safetensors keeps its files from other users
                part.replace(path)
    finally:
        for part in temporary:
            with suppress(OSError):  # not there, or on a disk that is read-only
                part.unlink()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`, which takes its place if the block succeeds; else as `atomic`."""
    temporary = _temporary(path)
    before = temporary.with_suffix(".old")
    try:
        with _disk_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_orphans(path)
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


def _temporary(path: Path) -> Path:
    """A name beside `path` that is this process's alone."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.partial")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def _disk_named(path: Path) -> Iterator[None]:
    """InputError in the place of the system's refusal to write."""
    try:
        yield
    except Exception as error:
        if reason := _why_not_written(error):
            raise InputError(f"{path}: cannot be written: {reason}, {_disk(path)}") from error
        raise


def _remove_orphans(path: Path) -> None:
    """Remove what processes of this machine that are gone have left of `path`, a file or a folder."""
    name = re.compile(re.escape(f".{path.name}.{platform.node()}.") + r"(\d+)\.(partial|old)")
    for part in path.parent.iterdir():
        found = name.fullmatch(part.name)
        if not found or _runs(int(found[1])):
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


_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)


def _why_not_written(error: Exception) -> str | None:
    """The system's words where it refuses to write; safetensors has its number in a text."""
    found = re.search(r"os error (\d+)", str(error))
    number = int(found[1]) if found else getattr(error, "errno", None)
    return os.strerror(number) if number in _REFUSALS else None


def _disk(path: Path) -> str:
    """The disk that `path` is to be on, and what is free there."""
    place = path.resolve()
    while not place.exists() or not os.path.ismount(place):
        place = place.parent
    return f"disk {place} has {shutil.disk_usage(place).free / 2**20:,.1f} MB free"


def _umask() -> int:
    """The mask of new files' permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
