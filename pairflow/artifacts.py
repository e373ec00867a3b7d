"""Parquet contracts: what a step writes, whole or not at all, and what the next step checks before it reads.

A file's own metadata hold only what is science (kind, N, K, vocabulary, parameters, hashes of inputs), so
that equal runs give equal bytes. When, where, by which commit and for how long stands beside it in
`<file>.provenance.json`.
"""

import errno
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pairflow.errors import InputError

_KEY = b"pairflow"
_PACKAGES = ("pairflow", "torch", "numpy", "numba", "pyarrow", "rdkit", "snakemake", "cupy-cuda13x")


@contextmanager
def atomic(*paths: Path) -> Iterator[list[Path]]:
    """Temporary names beside `paths`: all moved into place if the block succeeds, else all removed.

    InputError names the disk that is full or takes no file. What a killed process has left is removed.
    """
    temporary = [_temporary(path) for path in paths]
    try:
        with _disk_named(paths[0]):
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
                _remove_orphans(path)
            yield temporary
            for part in temporary:
                _flush(part)
            for part, path in zip(temporary, paths, strict=True):
                part.chmod(0o666 & ~_umask())  # safetensors keeps its files from other users
                part.replace(path)
    finally:
        for part in temporary:
            with suppress(OSError):  # not there, or on a disk that is read-only
                part.unlink()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path`, which takes its place if the block succeeds; else as `atomic`."""
    temporary = _temporary(path)
    before = temporary.with_suffix(".old")
    try:
        with _disk_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_orphans(path)
            temporary.mkdir()
            yield temporary
            for part in temporary.rglob("*"):
                _flush(part)
            if path.is_dir():
                path.replace(before)
            try:
                temporary.replace(path)
            except OSError:
                if before.is_dir():
                    before.replace(path)
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)


def _temporary(path: Path) -> Path:
    """A name beside `path` that is this process's alone."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.partial")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def _disk_named(path: Path) -> Iterator[None]:
    """InputError in the place of the system's refusal to write."""
    try:
        yield
    except Exception as error:
        if reason := _why_not_written(error):
            raise InputError(f"{path}: cannot be written: {reason}, {_disk(path)}") from error
        raise


def _remove_orphans(path: Path) -> None:
    """Remove what processes of this machine that are gone have left of `path`, a file or a folder."""
    name = re.compile(re.escape(f".{path.name}.{platform.node()}.") + r"(\d+)\.(partial|old)")
    for part in path.parent.iterdir():
        found = name.fullmatch(part.name)
        if not found or _runs(int(found[1])):
            continue
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)


def _why_not_written(error: Exception) -> str | None:
    """The system's words where it refuses to write; safetensors has its number in a text."""
    found = re.search(r"os error (\d+)", str(error))
    number = int(found[1]) if found else getattr(error, "errno", None)
    return os.strerror(number) if number in _REFUSALS else None


def _disk(path: Path) -> str:
    """The disk that `path` is to be on, and what is free there."""
    place = path.resolve()
    while not place.exists() or not os.path.ismount(place):
        place = place.parent
    return f"disk {place} has {shutil.disk_usage(place).free / 2**20:,.1f} MB free"


def _umask() -> int:
    """The mask of new files' permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def token_dtype(vocabulary_size: int) -> np.dtype:
    """The smallest of uint8, uint16 and int32 that holds the symbols 0 .. K-1."""
    if vocabulary_size <= 2**8:
        return np.dtype(np.uint8)
    return np.dtype(np.uint16 if vocabulary_size <= 2**16 else np.int32)


@dataclass(frozen=True)
class Science:
    """What a file's metadata say: enough to refuse a file that does not fit another one, by name.

    `padding` and `mask` are the symbols of the vocabulary that stand for them, if it has such.
    `shape` is (C, H, W) where rows are images: N = C * H * W, in that order. `data` is the `identity` of the
    data set that it stems from, `split` the part of it that the rows are, train or validation; None where
    nobody said so, as of an array of one's own.
    """

    kind: str
    length: int | None = None
    vocabulary_size: int | None = None
    vocabulary: str | None = None
    padding: int | None = None
    mask: int | None = None
    shape: list[int] | None = None
    data: str | None = None
    split: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def require_same_vocabulary(self, other: str | None, mine: Path, theirs: Path) -> None:
        """InputError unless `other` is the vocabulary hash that this file was made with."""
        if self.vocabulary != other:
            raise InputError(
                f"{mine} and {theirs} do not belong together: "
                f"vocabulary {str(self.vocabulary)[:12]} against {str(other)[:12]}"
            )

    def require_same_data(self, other: str | None, mine: Path, theirs: Path) -> None:
        """InputError where both stem from a known data set, and `other` is not the one of this file."""
        if None not in (self.data, other) and self.data != other:
            raise InputError(
                f"{mine} and {theirs} do not belong together: "
                f"they stem from other data, {self.data[:12]} against {other[:12]}"
            )

    def require_split(self, split: str, path: Path) -> None:
        """InputError where the rows of this file, `path`, are known to be another part of a data set."""
        if self.split not in (None, split):
            raise InputError(f"{path}: holds {self.split} rows, expected {split} rows")


def write_table(path: Path, table: pa.Table | pd.DataFrame, science: Science) -> None:
    """Write a Parquet file under `path` itself (use `atomic` around it)."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    facts = {**science.__dict__, "columns": _columns(table)}
    text = json.dumps({**facts, "checksum": _checksum(facts)}, sort_keys=True, default=dict)
    table = table.replace_schema_metadata({_KEY: text})
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def identity(*rows: np.ndarray) -> str:
    """What tells a data set from others: SHA-256 of its token rows, part by part."""
    found = hashlib.sha256()
    for part in rows:
        found.update(f"{part.dtype} {part.shape}\n".encode())
        found.update(np.ascontiguousarray(part))
    return found.hexdigest()


def read_science(path: Path) -> Science:
    """What a file's metadata say, its rows unread; InputError unless one of our steps wrote it."""
    try:
        facts = json.loads(pq.read_schema(path).metadata[_KEY])
        whole = facts.pop("checksum", None) in (None, _checksum(facts))
        facts.pop("columns", None)
        science = Science(**facts)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a Parquet file of pairflow, or damaged: make it anew") from error
    if not whole:
        raise InputError(f"{path}: altered since it was written: make it anew")
    return science


def read_table(path: Path, *kinds: str) -> tuple[pa.Table, Science]:
    """Read a Parquet file that one of our steps wrote; InputError unless whole and of one of `kinds`."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:  # a folder a=b is no column
            table = file.read()
        facts = json.loads(table.schema.metadata[_KEY])
        expected = facts.pop("checksum", None)  # files of earlier versions have none
        whole = expected in (None, _checksum(facts)) and facts.pop("columns", None) in (None, _columns(table))
        science = Science(**facts) if whole else None
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a Parquet file of pairflow, or damaged: make it anew") from error
    if science is None:
        raise InputError(f"{path}: altered since it was written: make it anew")
    if kinds and science.kind not in kinds:
        raise InputError(f"{path}: holds {science.kind}, expected {' or '.join(kinds)}")
    return table, science


def _columns(table: pa.Table) -> list[list[Any]]:
    """Names and types of the columns, and their rows: what the checksums of pages say nothing of."""
    kinds = [
        (getattr(kind, "value_type", kind), getattr(kind, "list_size", 1)) for kind in table.schema.types
    ]
    pairs = zip(table.column_names, kinds, strict=True)
    return [[name, str(kind), size, table.num_rows] for name, (kind, size) in pairs]


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=dict).encode()).hexdigest()


def token_column(tokens: np.ndarray, vocabulary_size: int) -> pa.FixedSizeListArray:
    """Token rows (M, N) as a fixed-size list column; InputError where a token would wrap around in it."""
    dtype = token_dtype(vocabulary_size)
    for token in (tokens.min(initial=0), tokens.max(initial=0)):
        if not 0 <= token <= np.iinfo(dtype).max:
            raise InputError(f"token {token} cannot be kept with a vocabulary of {vocabulary_size} symbols")
    flat = np.ascontiguousarray(tokens, dtype=dtype).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), tokens.shape[1])


def token_array(column: pa.ChunkedArray) -> np.ndarray:
    """A fixed-size list column as token rows (M, N)."""
    rows = column.combine_chunks()
    return rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), column.type.list_size)


METRIC_COLUMNS = {
    "method": "string",
    "nfe": "Int32",
    "trial": "Int32",
    "metric": "string",
    "value": "float64",
    "seed": "int64",
    "evaluation": "string",
    "samples": "int32",
    "reference": "string",
    "extractor": "string",
}


def as_metrics(rows: pd.DataFrame, **shared: Any) -> pd.DataFrame:
    """Rows with `metric`, `value` and maybe others as a metric table: all columns, ordered and typed.

    `shared` fills a column of all rows. Null where absent: `trial` for a metric over all trials, `nfe` where
    nothing was sampled, `reference` where nothing is compared with, `extractor` for molecules.
    """
    rows = rows.assign(**shared)
    return rows.reindex(columns=list(METRIC_COLUMNS)).astype(METRIC_COLUMNS)


@dataclass
class Stopwatch:
    """What a step costs since it began, where its long work ran, and the training rows it saw (None: none).

    Beside wall time (`seconds`) it takes `device_seconds`. On a CPU they are the user and system time of this
    process, all its threads together. On a GPU they are the wall time again, during which the step held that
    one GPU: how busy its kernels kept it is not measured. Of several `devices` they are this one's, times
    their number.
    """

    device: str = "cpu"
    devices: int = 1  # alike, each with a process that works as long as this one
    samples: int | None = None
    device_memory_mb: Callable[[], float] | None = None  # where torch's allocator does not know it
    started: float = field(default_factory=time.perf_counter)
    processor_started: float = field(default_factory=time.process_time)
    earlier: list[dict[str, Any]] = field(default_factory=list)

    def add(self, facts: dict[str, Any]) -> None:
        """Count a provenance as part of this work: of an interrupted run, or of a shard."""
        self.earlier.append(facts)

    def write(self, *paths: Path) -> None:
        """Write `<file>.provenance.json` beside each of `paths`."""
        facts = {
            **self._costs(),
            "samples_seen": self.samples,
            "device": self.device,
            "devices": self.devices,
            "machine": machine(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "command": sys.argv,
            "versions": _versions(),
        }
        for path in paths:
            with atomic(provenance_path(path)) as [temporary]:
                temporary.write_text(json.dumps(facts, indent=1) + "\n")

    def _costs(self) -> dict[str, float | None]:
        """Times with those of earlier work, null where one of them is not known; the largest peak memory."""
        wall = time.perf_counter() - self.started
        busy = time.process_time() - self.processor_started if self.device == "cpu" else wall
        times = {"seconds": wall, "device_seconds": busy * self.devices}
        for key in times:
            parts = [times[key], *(facts.get(key) for facts in self.earlier)]
            times[key] = None if None in parts else round(sum(parts), 3)
        peaks = [self._peak_memory_mb(), *(facts.get("peak_memory_mb") or 0 for facts in self.earlier)]
        return {**times, "peak_memory_mb": round(max(peaks), 1)}

    def _peak_memory_mb(self) -> float:
        """Peak resident memory of this process, or of the GPU's allocator where the work ran there."""
        if self.device_memory_mb:
            return self.device_memory_mb()
        if self.device != "cpu":
            import torch

            return torch.cuda.max_memory_allocated() / 2**20
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def machine() -> str:
    """What `timings` calls this machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def provenance_path(path: Path) -> Path:
    return path.with_name(path.name + ".provenance.json")


def read_provenance(path: Path) -> dict[str, Any]:
    """The provenance beside `path`; empty where there is none, InputError where it is damaged."""
    beside = provenance_path(Path(path))
    try:
        facts = json.loads(beside.read_text()) if beside.is_file() else {}
    except ValueError as error:
        raise InputError(f"{beside}: not JSON; without the file, times are not known") from error
    if not isinstance(facts, dict):
        raise InputError(f"{beside}: not a record of a step; without the file, times are not known")
    return facts


def _commit() -> str | None:
    """The commit of the checkout that this package was imported from, `+` if it has changes."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--abbrev=10"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return run.stdout.strip() or None


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
