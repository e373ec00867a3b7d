"""States of an optimisation on disk, from which an interrupted run resumes to the same bits."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pairflow.artifacts import atomic, digest

FORMAT = 2
SEAL = 65  # characters of the first line of a description
GENERATIONS = 2  # states on disk: if the newest is damaged, the one before it is used


class Snapshots:
    """The last two states in `folder`, each with tensors and JSON facts; saved every `seconds`.

    The folder belongs to a single run: its name has a digest of inputs and settings. `before_save` is called
    before each save.
    """

    def __init__(self, folder: Path, seconds: float = 300.0, before_save: Callable[[], None] = lambda: None):
        self.folder, self.seconds, self.before_save = Path(folder), seconds, before_save
        self.saved = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether `seconds` have passed since the last save."""
        return time.monotonic() - self.saved >= self.seconds

    def save(self, iteration: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Write the state after `iteration` iterations, then remove all but the newest two.

        It writes none if the folder vanishes: the same run, started twice, has finished and removed it.
        """
        try:
            self._write(iteration, tensors, facts)
        except (FileNotFoundError, SafetensorError):
            if self.folder.exists():
                raise
        self.saved = time.monotonic()

    def _write(self, iteration: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        self.before_save()
        weights, description = self._paths(iteration)
        with atomic(weights, description) as [new_weights, new_description]:
            on_cpu = {key: tensor.detach().contiguous().cpu() for key, tensor in tensors.items()}
            save_file(on_cpu, new_weights)
            content = {"format": FORMAT, "torch": torch.__version__, "sha256": digest(new_weights), **facts}
            text = json.dumps(content)
            new_description.write_text(self._seal(iteration, text) + text)
        for old in self._iterations()[GENERATIONS:]:
            for path in self._paths(old):
                path.unlink(missing_ok=True)

    def load(self, device: str | torch.device) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """(iteration, tensors, facts) of the newest undamaged state; None if there is none.

        States of another format, or of another version of torch, which may round differently, are skipped.
        """
        for iteration in self._iterations():
            weights, description = self._paths(iteration)
            try:
                seal, text = (content := description.read_text())[:SEAL], content[SEAL:]
                if seal != self._seal(iteration, text):
                    continue
                facts = json.loads(text)
                if (facts["format"], facts["torch"]) != (FORMAT, torch.__version__):
                    continue
                if digest(weights) == facts["sha256"]:
                    return iteration, load_file(weights, device=str(device)), facts
            except (OSError, ValueError, KeyError, TypeError, SafetensorError):
                continue
        return None

    def _seal(self, iteration: int, text: str) -> str:
        """The first line of a description: a hash of its text and of the place where it belongs."""
        place = f"{self.folder.name}/{iteration}\n"
        return hashlib.sha256((place + text).encode()).hexdigest() + "\n"

    def _iterations(self) -> list[int]:
        """The iterations of the states on disk, newest first."""
        names = (path.stem for path in self.folder.glob("*.json"))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def _paths(self, iteration: int) -> tuple[Path, Path]:
        return self.folder / f"{iteration}.safetensors", self.folder / f"{iteration}.json"
