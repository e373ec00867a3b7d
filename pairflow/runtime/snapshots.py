"""Saves states of a training run, from which it resumes after an interruption with the same result."""

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
    """Keeps the last two states of a run in `folder`. A state is a dict of tensors and plain values.

    The folder belongs to a single run: its name has a hash of inputs, settings and versions. A save is `due`
    every `seconds`. The seconds and the memory of earlier attempts are added to `provenance`, the record of
    what the run has cost.
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

    def save(self, iteration: int, state: Mapping[str, object]) -> None:
        """Write the state after `iteration` iterations, then remove all but the newest two.

        If the folder vanishes meanwhile, another process has finished the same run: that is no error.
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
        """Load the newest undamaged state. Returns (iteration, state on the CPU), or None without a state."""
        for iteration in self._iterations():
            if path := self.files.find(str(iteration)):
                return iteration, torch.load(path, map_location="cpu", weights_only=True)
        return None

    def _iterations(self) -> list[int]:
        """Return the iterations of the states on disk, newest first."""
        names = (path.stem for path in self.folder.glob("*.state"))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)
