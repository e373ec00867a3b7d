"""States of an optimisation on disk, from which an interrupted run resumes to the same bits."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pairflow.artifacts import Provenance
from pairflow.runtime.resume import StateFiles, add_earlier_costs

GENERATIONS = 2  # states on disk: if the newest is damaged, the previous one is used


class Snapshots:
    """The last two states in `folder`, each with tensors and plain values; saved every `seconds`.

    The folder belongs to a single run: its name has a digest of inputs, settings and versions. The
    `provenance` includes the costs of earlier attempts.
    """

    def __init__(self, folder: Path, seconds: float = 300.0, provenance: Provenance | None = None):
        self.folder, self.seconds, self.provenance = folder, seconds, provenance
        self.files, self.saved = StateFiles(folder, ".state"), time.monotonic()
        if provenance:
            add_earlier_costs(folder / "spent", provenance)

    @property
    def due(self) -> bool:
        """Whether `seconds` have passed since the last save."""
        return time.monotonic() - self.saved >= self.seconds

    def save(self, iteration: int, state: Mapping[str, Any]) -> None:
        """Write the state after `iteration` iterations, then remove all but the newest two.

        If the folder vanishes, nothing is written: a second process has finished the same run and removed it.
        """
        try:
            if self.provenance:
                self.provenance.write(self.folder / "spent")
            self.files.save(str(iteration), partial(torch.save, dict(state)))
            for old in self._iterations()[GENERATIONS:]:
                self.files.path(str(old)).unlink(missing_ok=True)
        except FileNotFoundError:
            if self.folder.exists():
                raise
        self.saved = time.monotonic()

    def load(self) -> tuple[int, dict[str, Any]] | None:
        """(iteration, state on the CPU) of the newest undamaged state; None if there is none."""
        for iteration in self._iterations():
            if path := self.files.find(str(iteration)):
                return iteration, torch.load(path, map_location="cpu", weights_only=True)
        return None

    def _iterations(self) -> list[int]:
        """The iterations of the states on disk, newest first."""
        names = (path.stem for path in self.folder.glob("*.state"))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)
