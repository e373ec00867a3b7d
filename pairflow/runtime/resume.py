"""Lets a long step resume: until it succeeds, its finished parts are saved in a separate folder."""

import functools
import hashlib
import io
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, read_provenance, save_table
from pairflow.errors import InputError, Interrupted
from pairflow.runtime import signals

if TYPE_CHECKING:
    import torch

BlockKey = tuple[int, ...]  # identifies a block; in a table of rows the last number counts the block's rows
RERUN = "which are saved: rerun the same command to resume"
SEAL = 32  # bytes of the hash at the end of a saved state


class ResumeOptions(NamedTuple):
    """The folder for saved states (None: next to the output), and the seconds between two saved states."""

    resume: Path | None = None
    save_every: float = 300.0

    def state_folder(self, out: Path, name: str, identity: Mapping[str, object]) -> Path:
        """Return the folder for the saved states of the run `name` that writes `out`: `<folder>/<name>-<hash
        of identity and pairflow's code>`.

        `identity` has the inputs and parameters, so a run with other ones never loads these states.
        """
        identity = {**identity, "code": code_digest()}
        folder = self.resume or out.parent / f".{out.name}.resume"
        text = json.dumps(identity, sort_keys=True, default=dict).encode()
        return folder / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"


class LongWork(NamedTuple):
    """How a step does long work: in how many processes, where it saves finished parts, and its record."""

    processes: int
    resume: ResumeOptions
    provenance: Provenance


@functools.cache
def code_digest() -> str:
    """Return a hash of pairflow's source, so that other code never continues what this code began."""
    content, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".cu")):
        content.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return content.hexdigest()


def remove_states(folder: Path) -> None:
    """Remove the folder with the states of a finished step, and its parent folder if that is then empty."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # it is not empty if another step that runs now uses it
        folder.parent.rmdir()


class ResumableTable:
    """A table made in blocks and written at the end. An interrupted step resumes, and writes the same bytes.

    `name` is for the folder of saved blocks, and `device` is the torch device that computes blocks, if any.
    Blocks from another type of device or another version of torch are not used: their bits may differ.
    """

    def __init__(
        self,
        out: Path,
        metadata: Metadata,
        name: str,
        options: ResumeOptions,
        provenance: Provenance,
        device: "torch.device | None" = None,
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
        """Make the blocks with these `keys`, tuples whose last number is the block's number of rows. Returns
        their arrays in order, from an earlier attempt or by `work(key)`.

        `bar(rows)` is a context with a progress bar for the rows that are still to be made.
        """
        blocks = BlockwiseWork(keys, self.folder, self.save_every, self.provenance)
        with bar(sum(key[-1] for key in blocks.pending)):
            return blocks.run(work)

    def write(self, table: pa.Table | pd.DataFrame) -> None:
        """Write the finished table with its provenance, and remove the saved states."""
        save_table(self.out, table, self.metadata, self.provenance)
        remove_states(self.folder)

    def write_array(self, array: np.ndarray) -> None:
        """Write a finished array as a .npy file, without metadata; otherwise like `write`."""
        with atomic(self.out) as [temporary], temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        self.provenance.write(self.out)
        remove_states(self.folder)


def split_rows(rows: int, size: int) -> list[tuple[int, int]]:
    """Split rows into consecutive blocks of at most `size`. Returns (first row, number of rows) of each."""
    return [(first, min(size, rows - first)) for first in range(0, rows, size)]


class StateFiles:
    """The files of saved states in `folder`. Each ends in a hash of its folder, name and content."""

    def __init__(self, folder: Path, suffix: str):
        self.folder, self.suffix = folder, suffix

    def find(self, name: str) -> Path | None:
        """Return the path of the state `name`; None if it is missing, damaged, or copied from elsewhere."""
        path = self.path(name)
        try:
            content = np.memmap(path, mode="r")
        except (OSError, ValueError):  # also an empty file
            return None
        return path if content[-SEAL:].tobytes() == self._seal(name, content[:-SEAL]) else None

    def save(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Save a state, whole or not at all: the bytes that `write` writes into a file, then the hash."""
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
    """Work in blocks, each of which makes an array. Interrupted work resumes with the missing blocks.

    Finished blocks are saved in `folder` every `seconds`, on SIGUSR1, and when the work is interrupted or
    fails. The costs of earlier attempts are added to `provenance`.
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
        """Make the pending blocks by `work(key)`. Returns the arrays of all blocks, in order.

        SIGUSR1 saves the finished blocks, and the work continues. A signal to stop, such as SIGTERM, saves
        them and raises Interrupted.
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
        """Write the finished blocks that are not on disk yet. If a signal calls it during a save, it does
        nothing."""
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
    """Write an array, by way of a buffer in memory, because np.save does not report a full disk."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    file.write(content.getbuffer())


def add_earlier_costs(spent: Path, provenance: Provenance) -> None:
    """Add to `provenance` the costs of earlier attempts, which are in the file `spent`, if there is one. If
    the file is damaged, the total is unknown."""
    try:
        costs = read_provenance(spent)
    except InputError:
        provenance.add({})
    else:
        if costs:
            provenance.add(costs)
