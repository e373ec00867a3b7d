"""Pairing of a file, or of one shard of its rows, in blocks that are saved as they finish."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pairflow import rng
from pairflow.artifacts import (
    Metadata,
    Provenance,
    digest,
    is_own,
    read_rows,
    read_table,
    row_column,
    token_array,
    token_column,
    token_dtype,
)
from pairflow.artifacts.rows import SUFFIXES
from pairflow.artifacts.tables import points_of
from pairflow.config import BASES, FLOWS, PairSettings
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.pairing.gpu import engine as gpu
from pairflow.pairing.pair import make_pairer
from pairflow.runtime import gpus
from pairflow.runtime.progress import joint_bar
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions, split_rows
from pairflow.settings.fields import RowLayout

if TYPE_CHECKING:
    import torch

BLOCK = 10**13  # token comparisons of a block: some 15 s on two cores, lost if a run is stopped
FEW_WEIGHTS = 3 * 10**10  # weights of a continuous pairing below which one thread is used: about a minute

Shard = tuple[int, int] | None  # (number from 1 on, number of shards); None for all rows


class PairOptions(NamedTuple):
    """Options of the command `pair` that are not settings of an experiment."""

    backend: str
    threads: int | None
    progress: bool
    vocabulary_size: int | None
    shard: Shard
    layout: RowLayout


@dataclass(eq=False)
class FilePairing(ABC):
    """The pairing of rows[0]..rows[1] - 1 of the data `points`: computed in blocks, and written to a file.

    `metadata` is that of the written pairs.
    """

    points: np.ndarray
    metadata: Metadata
    rows: tuple[int, int]
    provenance: Provenance
    device: "torch.device | None" = None  # if torch is used

    @abstractmethod
    def pair(self, rows: BlockKey) -> np.ndarray:
        """Pair the block `rows`, (number of the first row, number of rows).

        Returns an array with one entry per row, from which `columns` makes the pairs.
        """

    @abstractmethod
    def columns(self, made: np.ndarray) -> dict[str, pa.Array]:
        """Return the columns of the table of pairs; `made` is what `joined` returns."""

    @property
    @abstractmethod
    def comparisons(self) -> int:
        """The number of token comparisons, or of similar operations, per row."""

    def bar(self, rows: int) -> AbstractContextManager:
        """Return a context that may show a progress bar for `rows` rows; by default it shows none."""
        return nullcontext()

    def joined(self, blocks: list[np.ndarray]) -> np.ndarray:
        """Join the results of `pair` for all blocks, in the order of the output."""
        return np.concatenate(blocks)

    def write(self, out: Path, resume: ResumeOptions) -> None:
        """Pair the rows in blocks, and write the pairs to `out`; an interrupted run resumes.

        Raises InputError if `out` exists with other pairs than these, or as a .npy file.
        """
        _require_output(out, self.metadata)
        name = self.metadata.parameters["coupling"]
        table = ResumableTable(out, self.metadata, name, resume, self.provenance, self.device)
        self.name_device()
        made = self.joined(table.make(self._blocks(), self.pair, self.bar))
        self.name_device()  # the CPU may have taken over
        if out.suffix == ".npy":
            table.write_array(made.astype(token_dtype(self.metadata.dimensions[1]), copy=False))
        else:
            table.write(pa.table(self.columns(made)))

    def name_device(self) -> None:  # noqa: B027 (torch devices are recorded by `choose`)
        """Record in the provenance which device computes the pairs."""

    def _blocks(self) -> list[tuple[int, int]]:
        """Divide the rows into blocks, (first row, number of rows), of about BLOCK token comparisons each."""
        first, last = self.rows
        size = max(1, BLOCK // max(1, self.comparisons))
        return [(first + start, count) for start, count in split_rows(last - first, size)]


class TokenPairing(FilePairing):
    """Pairs token rows with sources (rows of noise), by Algorithm 1 or by independent draws."""

    def __init__(self, settings: PairSettings, path: Path, options: PairOptions, provenance: Provenance):
        if options.backend in ("auto", "gpu"):
            gpus.take()
        tokens, metadata = _read_tokens(path, options.vocabulary_size, options.layout)
        self.settings, self.size = settings, metadata.dimensions[1]
        self.progress = options.progress and BASES[settings.coupling].closed_form
        chosen = {"backend": options.backend, "threads": options.threads, "progress": options.progress}
        self.pairer = make_pairer(tokens, settings, vocabulary_size=self.size, **chosen)
        with provenance.uncounted():
            self.pairer.compile()
        self.order = self.pairer.order
        ordered = self.order is not None
        rows, metadata = _of_shard(metadata, settings, path, len(tokens), options.shard, ordered)
        inputs = {key: str(value) for key, value in options.layout.model_dump(exclude_none=True).items()}
        metadata = replace(metadata, inputs={**metadata.inputs, **inputs})
        super().__init__(tokens, metadata, rows, provenance)

    @property
    def comparisons(self) -> int:
        return self.points.size * (self.settings.steps or 1) // self.pairer.subsets

    def pair(self, rows: BlockKey) -> np.ndarray:
        first, count = rows
        return self.pairer.sources_in_order(first, first + count)

    def bar(self, rows: int) -> AbstractContextManager:
        return joint_bar("pairing", total=rows, unit="row", quiet=not self.progress)

    def joined(self, blocks: list[np.ndarray]) -> np.ndarray:
        if self.order is None or self.metadata.kind != "pairs":
            return super().joined(blocks)
        made = np.empty_like(self.points)
        made[self.order] = np.concatenate(blocks)
        return made

    def columns(self, made: np.ndarray) -> dict[str, pa.Array]:
        x1 = self.points
        if self.metadata.kind != "pairs":  # a shard
            places = slice(*self.rows)
            x1 = x1[places if self.order is None else self.order[places]]
        columns = {"x0": made, "x1": x1}
        return {name: token_column(rows, self.size) for name, rows in columns.items()}

    def name_device(self) -> None:
        self.provenance.device = "cuda" if self.pairer.on_gpu else "cpu"
        self.provenance.device_memory_mb = gpu.held_memory_mb if self.pairer.on_gpu else None


class PointPairing(FilePairing):
    """Pairs sources from N(0, I) with data points, by forward pairing.

    The pairs have two more columns: `target`, the row of the data point, and `moved`, its distance from the
    end of the trajectory.
    """

    def __init__(self, settings: PairSettings, path: Path, options: PairOptions, provenance: Provenance):
        from pairflow.runtime.device import choose

        source, metadata = read_table(path, "vectors", "tokens")
        points = points_of(source, metadata)
        self.steps, self.seed = settings.steps or 1, settings.seed
        rows, metadata = _of_shard(metadata, settings, path, len(points), options.shard)
        metadata = replace(metadata, kind=metadata.kind.replace("pairs", "vector pairs"))
        weights = (rows[1] - rows[0]) * len(points) * self.steps
        threads = 1 if weights < FEW_WEIGHTS else options.threads
        device = choose({"gpu": "cuda"}.get(options.backend, options.backend), threads, provenance)
        super().__init__(points, metadata, rows, provenance, device)

    @property
    def comparisons(self) -> int:
        return self.points.size * self.steps

    def pair(self, rows: BlockKey) -> np.ndarray:
        from pairflow.pairing.continuous import pair_continuous

        chosen: Json = {"steps": self.steps, "seed": self.seed, "device": self.device}
        first, count = rows
        pairs = pair_continuous(self.points, rows=(first, first + count), progress=False, **chosen)
        return np.column_stack([pairs.target, pairs.moved])

    def columns(self, made: np.ndarray) -> dict[str, pa.Array]:
        target, length = made[:, 0].astype(np.int64), self.metadata.length or 0
        x0 = rng.normals(self.seed, np.arange(*self.rows), length)  # the sources that `pair` started from
        x1 = self.points.reshape(len(self.points), length)[target]
        ends = {"target": pa.array(target), "moved": pa.array(made[:, 1].astype(np.float32))}
        return {"x0": row_column(x0), "x1": row_column(x1), **ends}


def read_pairing(
    settings: PairSettings, path: Path, out: Path, options: PairOptions, provenance: Provenance
) -> FilePairing:
    """Read the rows in `path`, and return their pairing.

    Raises InputError if the rows, the suffix of `out` or an option do not fit the settings.
    """
    if out.suffix not in (".parquet", ".npy"):
        raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .parquet or .npy")
    if options.shard and out.suffix == ".npy":
        raise InputError(f"{out}: a shard is written as .parquet, which `pairflow gather` joins")
    if FLOWS[settings.flow].tokens:
        return TokenPairing(settings, path, options, provenance)
    if options.backend == "reference" or out.suffix == ".npy":
        raise InputError(f"--flow {settings.flow}: writes pairs (.parquet), by the backend auto, cpu or gpu")
    return PointPairing(settings, path, options, provenance)


def _of_shard(
    metadata: Metadata,
    settings: PairSettings,
    path: Path,
    count: int,
    shard: Shard,
    ordered: bool = False,
) -> tuple[tuple[int, int], Metadata]:
    """Return the rows (first, last + 1) of a shard of `count` rows, and the metadata of its pairs.

    `shard` is (its number from 1, the number of shards), or None for all rows. `metadata` belongs to the rows
    in `path`. If `ordered`, rows are counted subset by subset, so that a shard has rows of few subsets.
    """
    number, shards = shard or (1, 1)
    if shards > count:
        raise InputError(f"--shard: {shards} shards are too many for {count} rows; choose fewer")
    rows = count * (number - 1) // shards, count * number // shards
    part: Json = {"rows": list(rows), "of": count} if shard else {}
    if shard and ordered:
        part["order"] = "subsets"
    kind = "shard of pairs" if shard else "pairs"
    parameters = {**settings.model_dump(mode="json"), **part}
    return rows, replace(metadata, kind=kind, parameters=parameters, inputs={"tokens": digest(path)})


def _require_output(out: Path, wanted: Metadata) -> None:
    """Raise InputError if `out` is a .npy file that exists, or has pairs of other tokens or settings.

    `wanted` is the metadata of the pairs that are to be written.
    """
    if not out.exists():
        return
    if out.suffix == ".npy":
        raise InputError(f"{out}: already exists; remove it or choose another --out")
    _, existing = read_table(out, wanted.kind)
    if existing.inputs != wanted.inputs:
        raise InputError(f"{out}: exists, with pairs of other tokens; remove it or choose another --out")
    parameters = {"K": existing.vocabulary_size, **existing.parameters}
    for key, value in {"K": wanted.vocabulary_size, **wanted.parameters}.items():
        if parameters.get(key) != value:
            raise InputError(
                f"{out}: exists, with {key} {parameters.get(key)} instead of {value}; "
                "remove it or choose another --out"
            )


def _read_tokens(path: Path, vocabulary_size: int | None, layout: RowLayout) -> tuple[np.ndarray, Metadata]:
    """Read token rows that pairflow wrote, or a user's own, and return them with their metadata.

    A user's rows need `vocabulary_size`, and may need a `layout`. Raises InputError if these do not fit the
    file.
    """
    suffix = path.suffix.lower()
    if is_own(path) or (vocabulary_size is None and suffix not in {*SUFFIXES} - {".parquet"}):
        if layout != RowLayout():
            raise InputError(f"{path}: --column, --dtype and --length are for rows of your own")
        table, metadata = read_table(path, "tokens")
        if vocabulary_size not in (None, metadata.vocabulary_size):
            raise InputError(
                f"{path}: K = {metadata.vocabulary_size}, but --vocabulary-size says {vocabulary_size}"
            )
        return token_array(table["tokens"]), metadata
    if vocabulary_size is None:
        raise InputError(f"{path}: --vocabulary-size is needed with a {suffix} file")
    rows = read_rows(path, vocabulary_size, **layout.model_dump())
    return rows, Metadata(kind="tokens", length=rows.shape[1], vocabulary_size=vocabulary_size)
