"""How a long step resumes: its finished parts are saved outside its outputs until it succeeds."""

import hashlib
import io
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from pairflow._version import __version__
from pairflow.artifacts import Metadata, Provenance, atomic, read_provenance, save_table
from pairflow.errors import InputError, Interrupted
from pairflow.runtime import signals

BlockKey = tuple[int, ...]  # identifies a block; in a table of rows the last number counts the block's rows
RERUN = "which are saved: rerun the same command to resume"
SEAL = 32  # bytes of the hash at the end of a saved state


class ResumeOptions(NamedTuple):
    """The folder for saved states (None: next to the output) and the seconds between two saved states."""

    resume: Path | None = None
    save_every: float = 300.0

    def state_folder(self, out: Path, name: str, identity: Mapping[str, Any]) -> Path:
        """`<folder>/<name>-<digest>`: other inputs or parameters, or another version, are another run."""
        identity = {**identity, "pairflow": __version__}
        folder = self.resume or out.parent / f".{out.name}.resume"
        text = json.dumps(identity, sort_keys=True, default=dict).encode()
        return folder / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"


def remove_states(folder: Path) -> None:
    """Remove the states of a finished step, and the folder above if it is empty then."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # it is not empty if another step that runs now uses it
        folder.parent.rmdir()


class ResumableTable:
    """A table made in blocks and written at the end. An interrupted step resumes, to the same bytes.

    `device` is the torch device that computes the blocks, if any. States from another type of device or
    another version of torch are not used, because their bits may differ.
    """

    def __init__(
        self,
        out: Path,
        metadata: Metadata,
        name: str,
        options: ResumeOptions,
        provenance: Provenance,
        device: Any = None,
    ):
        self.out, self.metadata, self.provenance = out, metadata, provenance
        identity = dict(metadata.__dict__)
        if device is not None:
            import torch

            identity |= {"device": device.type, "torch": torch.__version__}
        self.save_every, self.folder = options.save_every, options.state_folder(out, name, identity)

    def make(
        self,
        keys: Sequence[BlockKey],
        work: Callable[[BlockKey], np.ndarray],
        bar: Callable[[int], AbstractContextManager] = nullcontext,
    ) -> list[np.ndarray]:
        """The blocks' arrays in order, each from an earlier attempt or from `work(key)`.

        `bar(rows)` is the progress bar for the rows that are still to be made.
        """
        blocks = BlockwiseWork(keys, self.folder, self.save_every, self.provenance)
        with bar(sum(key[-1] for key in blocks.pending)):
            return blocks.run(work)

    def write(self, table: pa.Table | pd.DataFrame) -> None:
        """Write the finished table with its provenance, and remove the saved states."""
        save_table(self.out, table, self.metadata, self.provenance)
        remove_states(self.folder)

    def write_array(self, array: np.ndarray) -> None:
        """Like `write`, for an array as a .npy file, which has no metadata."""
        with atomic(self.out) as [temporary], temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        self.provenance.write(self.out)
        remove_states(self.folder)


def split_rows(rows: int, size: int) -> list[tuple[int, int]]:
    """(first row, number of rows) of consecutive blocks of `size` rows at most."""
    return [(first, min(size, rows - first)) for first in range(0, rows, size)]


class StateFiles:
    """Saved states by name in `folder`; each file ends in a hash of its folder, name and content."""

    def __init__(self, folder: Path, suffix: str):
        self.folder, self.suffix = folder, suffix

    def find(self, name: str) -> Path | None:
        """The file of that name; None if it is missing, damaged, or was copied from elsewhere."""
        path = self.path(name)
        try:
            content = np.memmap(path, mode="r")
        except (OSError, ValueError):  # also an empty file
            return None
        return path if content[-SEAL:].tobytes() == self._seal(name, content[:-SEAL]) else None

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file whole: what `write` puts into it, and the hash."""
        with atomic(self.path(name)) as [temporary]:
            with temporary.open("wb") as file:
                write(file)
            seal = self._seal(name, np.memmap(temporary, mode="r"))
            with temporary.open("ab") as file:
                file.write(seal)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}{self.suffix}"

    def _seal(self, name: str, content: np.ndarray) -> bytes:
        seal = hashlib.sha256(f"{self.folder.name}/{name}\n".encode())
        seal.update(content.data)
        return seal.digest()


class BlockwiseWork:
    """Work in blocks, each of which gives an array. Interrupted work resumes with the missing blocks.

    Finished blocks are saved in `folder` every `seconds`, on SIGUSR1, and when the work is interrupted;
    shorter work leaves no file. The provenance includes the costs of earlier attempts.
    """

    def __init__(self, keys: Sequence[BlockKey], folder: Path, seconds: float, provenance: Provenance):
        self.keys, self.seconds, self.provenance = keys, seconds, provenance
        self.files, self.spent = StateFiles(folder, ".block"), folder / "spent"
        self.arrays = {key: self._load(key) for key in keys}
        self.saving = False
        self.on_disk = {key for key, array in self.arrays.items() if array is not None}
        add_earlier_costs(self.spent, provenance)

    @property
    def pending(self) -> list[BlockKey]:
        """The blocks that are still to be made."""
        return [key for key, array in self.arrays.items() if array is None]

    def run(self, work: Callable[[BlockKey], np.ndarray]) -> list[np.ndarray]:
        """The arrays of all blocks, in order. SIGUSR1 saves what is finished, and the work continues.

        Raises Interrupted on a signal of `signals.STOP`, after all finished blocks are saved.
        """
        with signals.interruptible(self._save):
            try:
                self._run(work)
            except signals.Stopped as stop:
                self._save()
                done = len(self.keys) - len(self.pending)
                stopped = f"stopped after {done:,} of {len(self.keys):,} blocks, {RERUN}"
                raise Interrupted(stopped, stop.number) from None
            except BaseException:
                self._save()
                raise
        return [array for array in self.arrays.values() if array is not None]

    def _run(self, work: Callable[[BlockKey], np.ndarray]) -> None:
        saved = time.monotonic()
        for key in self.pending:
            self.arrays[key] = work(key)
            if self.pending and time.monotonic() - saved >= self.seconds:
                self._save()
                saved = time.monotonic()

    def _load(self, key: BlockKey) -> np.ndarray | None:
        path = self.files.find(_file_name(key))
        return None if path is None else np.load(path, allow_pickle=False)

    def _save(self) -> None:
        """Write the blocks that are not on disk yet; does nothing if a signal interrupts a save."""
        if self.saving:
            return
        self.saving = True
        try:
            if any(array is not None for array in self.arrays.values()):
                self.provenance.write(self.spent)  # first: the cost counts even if the next writes fail
            for key, array in self.arrays.items():
                if array is not None and key not in self.on_disk:
                    self.files.save(_file_name(key), partial(_write_array, array))
                    self.on_disk.add(key)
        finally:
            self.saving = False


def _file_name(key: BlockKey) -> str:
    return "-".join(map(str, key))


def _write_array(array: np.ndarray, file: BinaryIO) -> None:
    """Write an array by way of memory, because np.save does not report a full disk."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    file.write(content.getbuffer())


def add_earlier_costs(spent: Path, provenance: Provenance) -> None:
    """Add the costs of earlier attempts; a damaged record makes the total unknown."""
    try:
        costs = read_provenance(spent)
    except InputError:
        provenance.add({})
    else:
        if costs:
            provenance.add(costs)
