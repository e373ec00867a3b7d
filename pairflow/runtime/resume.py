"""What a long step has done so far, kept outside its outputs until it succeeds."""

import hashlib
import io
import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Provenance, atomic, read_provenance
from pairflow.errors import InputError, Interrupted
from pairflow.runtime import signals

Block = tuple[int, ...]  # the numbers that tell a part of the work from the others


def folder_of(folder: Path, name: str, facts: dict[str, Any]) -> Path:
    """`folder`/<name>-<digest of `facts`>: other inputs or parameters are another run."""
    text = json.dumps(facts, sort_keys=True).encode()
    return folder / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"


def remove(folder: Path) -> None:
    """Remove what a finished step no longer needs, and the folder above if nothing else is there."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # steps side by side share it
        folder.parent.rmdir()


class Finished:
    """Arrays by name in `folder`, each a file that begins with a hash of its place and its content."""

    def __init__(self, folder: Path):
        self.folder = folder

    def load(self, name: str) -> np.ndarray | None:
        """The array of that name; None where it is not there, not whole, or another's."""
        try:
            content = self._path(name).read_bytes()
        except OSError:
            return None
        seal, content = content[:32], content[32:]
        if seal != self._seal(name, content):
            return None
        return np.load(io.BytesIO(content), allow_pickle=False)

    def save(self, name: str, array: np.ndarray) -> None:
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        with atomic(self._path(name)) as [temporary]:
            temporary.write_bytes(self._seal(name, content.getvalue()) + content.getvalue())

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.block"

    def _seal(self, name: str, content: bytes) -> bytes:
        return hashlib.sha256(f"{self.folder.name}/{name}\n".encode() + content).digest()


class Blocks:
    """Work in blocks, each an array on its own: work that was stopped goes on where it was.

    What is made is saved in `folder` every `seconds`, on SIGUSR1, and when something stops the work: a work
    shorter than that leaves no file. The provenance takes up what earlier attempts have cost.
    """

    def __init__(self, every: Sequence[Block], folder: Path, seconds: float, provenance: Provenance):
        self.every, self.seconds, self.provenance = every, seconds, provenance
        self.finished, self.spent = Finished(folder), folder / "spent"
        self.arrays = {block: self.finished.load(_name(block)) for block in every}
        self.saving = False
        self.on_disk = {block for block, array in self.arrays.items() if array is not None}
        _take_up(self.spent, provenance)

    @property
    def left(self) -> list[Block]:
        """The blocks that are not made yet."""
        return [block for block, array in self.arrays.items() if array is None]

    def make(self, work: Callable[[Block], np.ndarray]) -> list[np.ndarray]:
        """The arrays of all blocks, in order; on SIGUSR1 what is made so far is saved.

        Raises Interrupted on SIGTERM and SIGINT, with all saved.
        """
        with signals.raised(self._save):
            try:
                self._make(work)
            except signals.Stopped as stop:
                self._save()
                done = len(self.every) - len(self.left)
                raise Interrupted(
                    f"stopped after {done:,} of {len(self.every):,} blocks, which are saved", stop.number
                ) from None
            except BaseException:
                self._save()
                raise
        return list(self.arrays.values())

    def _make(self, work: Callable[[Block], np.ndarray]) -> None:
        saved = time.monotonic()
        for block in self.left:
            self.arrays[block] = work(block)
            if self.left and time.monotonic() - saved >= self.seconds:
                self._save()
                saved = time.monotonic()

    def _save(self) -> None:
        """Write what is not on disk yet; nothing where a signal asks for it while that is being done."""
        if self.saving:
            return
        self.saving = True
        try:
            if any(array is not None for array in self.arrays.values()):
                self.provenance.write(self.spent)  # first: it is spent, whatever becomes of the rest
            for block, array in self.arrays.items():
                if array is not None and block not in self.on_disk:
                    self.finished.save(_name(block), array)
                    self.on_disk.add(block)
        finally:
            self.saving = False


def _name(block: Block) -> str:
    return "-".join(map(str, block))


def _take_up(spent: Path, provenance: Provenance) -> None:
    """Count what earlier attempts have cost; of a damaged record, that it is not known."""
    try:
        facts = read_provenance(spent)
    except InputError:
        provenance.add({})
    else:
        if facts:
            provenance.add(facts)


def snapshots_of(folder: Path, save_every: float, provenance: Provenance):
    """Snapshots in `folder` of an optimisation; the provenance takes up what it has cost so far."""
    from pairflow.runtime.snapshots import Snapshots

    spent = folder / "spent"
    _take_up(spent, provenance)
    return Snapshots(folder, save_every, saving=lambda: provenance.write(spent))
