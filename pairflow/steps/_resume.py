"""What a long step has done so far, kept outside its outputs until it succeeds."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Stopwatch, atomic, read_provenance


def folder_of(folder: Path, name: str, facts: dict[str, Any]) -> Path:
    """`folder`/<name>-<digest of `facts`>: other inputs or parameters are another run."""
    text = json.dumps(facts, sort_keys=True).encode()
    return folder / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"


def remove(folder: Path) -> None:
    """Remove what a finished step no longer needs, and the folder above if nothing else is there."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.is_dir() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()


class Finished:
    """Arrays by name in `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder

    def load(self, name: str) -> np.ndarray | None:
        """The array of that name; None where it is not there, or not whole."""
        try:
            return np.load(self.folder / f"{name}.npy", allow_pickle=False)
        except (OSError, ValueError):
            return None

    def save(self, name: str, array: np.ndarray) -> None:
        with atomic(self.folder / f"{name}.npy") as [temporary], temporary.open("wb") as file:
            np.save(file, array)


def snapshots_of(folder: Path, save_every: float, stopwatch: Stopwatch):
    """Snapshots in `folder` of an optimisation; the stopwatch takes up what it has cost so far."""
    from pairflow.training.snapshots import Snapshots

    spent = folder / "spent"
    if facts := read_provenance(spent):
        stopwatch.add(facts)
    return Snapshots(folder, save_every, saved=lambda: stopwatch.write(spent))
