"""Finished parts of a long step, kept outside its outputs until it succeeds."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import atomic


class Finished:
    """Arrays by name in `folder`/<name>-<digest of `facts`>: other inputs or parameters are another run."""

    def __init__(self, folder: Path, name: str, facts: dict[str, Any]):
        text = json.dumps(facts, sort_keys=True).encode()
        self.folder = folder / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"

    def load(self, name: str) -> np.ndarray | None:
        """The array of that name; None where it is not there, or not whole."""
        try:
            return np.load(self.folder / f"{name}.npy", allow_pickle=False)
        except (OSError, ValueError):
            return None

    def save(self, name: str, array: np.ndarray) -> None:
        with atomic(self.folder / f"{name}.npy") as [temporary], temporary.open("wb") as file:
            np.save(file, array)

    def clear(self) -> None:
        """Remove what the finished step no longer needs."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.parent.is_dir() and not any(self.folder.parent.iterdir()):
            self.folder.parent.rmdir()
