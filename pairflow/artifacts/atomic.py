"""Files that appear whole or not at all: written under a temporary name, flushed to disk, then renamed."""

import errno
import fcntl
import hashlib
import os
import platform
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pairflow.errors import InputError
from pairflow.files import resolved

_LIST = ".pairflow-files"  # in a folder for outputs: the files there that pairflow has written


@contextmanager
def atomic(*paths: Path) -> Iterator[list[Path]]:
    """Yield the paths of temporary files, which a `with` block writes. If it succeeds, rename all to `paths`;
    else remove them.

    A link remains, and the file that it leads to is replaced; a replaced file keeps its permissions. Files
    that killed processes left are removed. Raises InputError, which names the disk, if it is full or
    read-only.
    """
    paths = tuple(resolved(path) if path.is_symlink() else path for path in paths)
    temporary = [_temporary(path) for path in paths]
    try:
        with _disk_named(paths[0]):
            for path in paths:
                _make_folder(path)
            yield temporary
            for part in temporary:  # before the first is renamed: a full disk may show only now
                _flush(part)
            for part, path in zip(temporary, paths, strict=True):
                part.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
                part.replace(path)
    finally:
        for part in temporary:
            with suppress(OSError):  # missing, or on a read-only disk
                part.unlink()


def require_writable(path: Path, folder: bool = False) -> None:
    """Raise InputError, with the name of the disk, if no file can be written to the folder of `path`. If
    `folder` is true, `path` is that folder. If the folder does not exist yet, the nearest existing one above
    it is tried."""
    nearest = resolved(path) if folder else resolved(path).parent
    while not nearest.exists():
        nearest = nearest.parent
    try:
        tempfile.TemporaryFile(dir=nearest).close()  # permissions do not say what a disk refuses
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}, {disk_of(path)}") from error


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Let only one `with` block at a time write into the folder of `path`. Blocks for it, in all processes,
    wait for their turn, so they must not be nested."""
    folder = os.open(resolved(path).parent, os.O_RDONLY)  # the file itself is replaced, and its lock with it
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to a `with` block. When the block ends, its files move to `folder`, where they
    replace the files of an earlier block.

    A list in `folder` has the SHA-256 and the name of each file that a block wrote, in the format of
    `sha256sum`. Other files stay; raises InputError if a new file would overwrite one of them. A process
    that is killed leaves a list of the old and the new files, so that the next block recognises both.
    """
    folder = resolved(folder) if folder.is_symlink() else folder
    temporary = _temporary(folder)
    try:
        with _disk_named(folder):
            _make_folder(folder)
            temporary.mkdir()
            yield temporary
            _replace(folder, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(folder: Path, new: Path) -> None:
    """Move the files of `new` to `folder`, and remove the files of an earlier block, which a list in `folder`
    has, if `new` has not.

    Raises InputError if a new file would overwrite one that is not as listed.
    """
    folder.mkdir(exist_ok=True)
    written = {part.name: _entry(part) for part in new.iterdir()}
    known = _listed(folder) | {*written.values()}
    names = {entry.partition("  ")[2] for entry in known}
    there = {path.name: path for path in folder.iterdir() if path.name in names}
    plain = {name for name, path in there.items() if path.is_file() and not path.is_symlink()}
    ours = {name for name in plain if _entry(there[name]) in known}  # with the content that was listed
    for name in written:
        if name in there and name not in ours:
            raise InputError(
                f"{there[name]}: is there, and is no file that pairflow has written; move it to another "
                "folder, or name another folder for the new files"
            )
        _flush(new / name)
    _write_list(folder, known)  # the old and the new files, until all are moved
    for name in written:
        (new / name).replace(folder / name)
    for name in ours - written.keys():
        there[name].unlink()
    _write_list(folder, written.values())


def _listed(folder: Path) -> set[str]:
    """Return the entries of the folder's list; empty without a list."""
    file = folder / _LIST
    return {*file.read_text("utf-8", errors="replace").splitlines()} if file.is_file() else set()


def _write_list(folder: Path, entries: Iterable[str]) -> None:
    with atomic(folder / _LIST) as [temporary]:
        temporary.write_text("".join(f"{entry}\n" for entry in sorted(entries)), "utf-8")


def _entry(path: Path) -> str:
    """Return a file's line in the list."""
    return f"{digest(path)}  {path.name}"


def _make_folder(path: Path) -> None:
    """Make the parent folder of `path`, and remove the temporary files of `path` that ended processes left
    there. Raises InputError if no file can be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()  # a folder such as /proc is there, but takes no file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}, {disk_of(path)}") from error
    _remove_orphans(path)


def _temporary(path: Path) -> Path:
    """Return the path of a temporary file for `path`, in its folder. The name is this process's own, even if
    containers share host names and process numbers."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _disk_named(path: Path) -> Iterator[None]:
    """In the block, which writes `path`, turn the system's refusal to write into an InputError with the path
    and the disk."""
    try:
        yield
    except Exception as error:
        if reason := _why_not_written(error):
            raise InputError(f"{path}: cannot be written: {reason}, {disk_of(path)}") from error
        raise


def _remove_orphans(path: Path) -> None:
    """Remove the temporary files or folders of `path` that ended processes of this machine have left."""
    name = re.compile(re.escape(f".{path.name}.{platform.node()}.") + r"(\d+)(-\w+)?\.partial")
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
    except OSError as error:  # a process of another user may not be asked
        return not isinstance(error, ProcessLookupError)
    return True


_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


def _why_not_written(error: BaseException | None) -> str | None:
    """Return the system's message if `error` comes from the system's refusal to write, None for another
    error. (safetensors has the error number only in its text, and torch raises another error after the
    system's.)"""
    if error is None:
        return None
    match = re.search(r"os error (\d+)", str(error))
    number = int(match[1]) if match else getattr(error, "errno", None)
    return os.strerror(number) if number in _REFUSALS else _why_not_written(error.__context__)


def disk_of(path: Path) -> str:
    """Return the disk that `path` is on, and its free space."""
    mount = resolved(path)
    while not mount.exists() or not os.path.ismount(mount):
        mount = mount.parent
    return f"disk {mount} has {shutil.disk_usage(mount).free / 2**20:,.1f} MB free"


def _umask() -> int:
    """Return the mask for the permissions of new files, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
