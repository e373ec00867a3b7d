"""Chooses a GPU for a step: if possible one that no other step on this machine uses.

To mark its GPU as used, a step locks a file in the folder for temporary files until its process ends. Only
the chosen GPUs are made visible to CUDA, before torch or CuPy ask for them: both use the first visible one.
"""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from pairflow.errors import InputError
from pairflow.runtime import distributed

MOST_STEPS = 64  # steps that may share one GPU

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # any user may put a link or a pipe there

_locks: list[int] = []  # file descriptors, open as long as this process lives


def take() -> None:
    """Take one GPU for this process, if there is any; each of torchrun's processes takes a different one."""
    if distributed.local_world_size() == 1:
        return reserve(1)
    gpus = visible()
    if gpus:
        _require(distributed.local_world_size(), gpus)
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[distributed.local_rank()]


def reserve(count: int) -> None:
    """Take the `count` GPUs that the fewest steps use, for this process and its children."""
    gpus = visible()
    if not gpus:
        return
    _require(count, gpus)
    chosen: list[str] = []
    for holder in range(MOST_STEPS):  # first GPUs that no step uses, then GPUs with one step, and so on
        for gpu in gpus:
            if len(chosen) < count and gpu not in chosen and _lock(gpu, holder):
                chosen.append(gpu)
    if len(chosen) == count < len(gpus):
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(chosen)


def visible() -> list[str]:
    """Return the GPUs that CUDA may use, by index or UUID.

    CUDA itself is not asked, because it reads CUDA_VISIBLE_DEVICES only once.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.split() if run.returncode == 0 else []


def _require(count: int, gpus: list[str]) -> None:
    if count > len(gpus):
        raise InputError(f"{count} processes need one GPU each, but {len(gpus)} are visible")


def _lock(gpu: str, holder: int) -> bool:
    """Try to lock place number `holder` on a GPU until this process ends. Returns whether that worked.

    A place is a file, shared by all users. If the file cannot be opened, a note is printed and the place
    counts as taken.
    """
    path = Path(tempfile.gettempdir(), f"pairflow-gpu-{gpu.replace('/', '-')}-{holder}.lock")
    try:
        file = os.open(path, _OPEN | (0 if path.exists() else os.O_CREAT), 0o644)
    except OSError as error:  # another user's private file, or a link
        return _skip(path, error.strerror or "cannot be opened")
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return _skip(path, "not a regular file")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    _locks.append(file)
    return True


def _skip(path: Path, reason: str) -> bool:
    """Print why a file cannot be locked, and return False, as if another step had locked it."""
    print(f"pairflow: note: {path}: {reason}; it counts as a lock that another step holds", file=sys.stderr)
    return False
