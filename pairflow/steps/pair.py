"""Token rows to pairs (x0, x1): a source state for every data point, all at once or in shards."""

import re
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from pairflow import rng
from pairflow.artifacts import (
    Metadata,
    Provenance,
    digest,
    read_rows,
    read_table,
    row_column,
    token_array,
    token_column,
    token_dtype,
)
from pairflow.config import PairSettings
from pairflow.errors import InputError
from pairflow.pairing.gpu import engine as gpu
from pairflow.pairing.pair import BACKENDS, Pairer, RowwisePairer, make_pairer
from pairflow.pairing.probe import extrapolated
from pairflow.runtime import gpus
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, resumable, threads

BLOCK = 10**14  # token comparisons that are saved or lost together: a few minutes on two cores
FEW_WEIGHTS = 3 * 10**10  # of a continuous pairing: a minute of one core, where more threads mostly wait
PROBE_SECONDS = 3.0  # how long a dry run measures


class _Shard(click.ParamType):
    name = "k/P"

    def convert(self, value, param, ctx):
        match = re.fullmatch(r"(\d+)/(\d+)", value)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"expected k/P with 1 <= k <= P, found {value!r}", param, ctx)
        return int(match[1]), int(match[2])


@step(PairSettings)
@existing(
    "--tokens",
    help="Token rows: Parquet from `pairflow preprocess`, or a .npy file with a "
    "two-dimensional array of integers, one row per data point.",
)
@out(
    "--out",
    help="Output file, one row per data point, in data order: the pairs x0, x1 (.parquet), or only the "
    "sources x0 as an array of the smallest integer type that holds K (.npy).",
)
@click.option("--vocabulary-size", type=int, help="Number of symbols K; needed only for a .npy file.")
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="All backends give identical output; `auto` uses the GPU if there is one that can and if the "
    "data are not small.",
)
@click.option(
    "--shard",
    type=_Shard(),
    help="Divide the rows into equal ranges, as many as the second number, and pair only the range "
    "that the first number names; `pairflow gather` joins the results.",
)
@click.option("--dry-run", is_flag=True, help="Estimate operations, time and memory, and write nothing.")
@resumable
@threads
@quiet
def main(
    settings: PairSettings,
    tokens: Path,
    out: Path,
    vocabulary_size,
    backend,
    shard,
    dry_run,
    resume,
    threads,
    quiet,
):
    """Give every data point a source state: one computed by Algorithm 1 of the paper (pairflow), or
    independent uniform noise (random).

    With --flow continuous the data are vectors or images of numbers. Sources from N(0, I) walk to the data
    points that they belong to, and the output has a row for each source.

    An interrupted pairing resumes. The result depends only on the tokens, the vocabulary size, --steps,
    --subsets and --seed.
    """
    provenance = Provenance()
    _check_suffix(out, shard)
    if settings.flow == "continuous":
        return _pair_points(settings, tokens, out, backend, shard, dry_run, resume, provenance, threads)
    if backend in ("auto", "gpu"):
        gpus.take()
    x1, metadata = _read(tokens, vocabulary_size)
    options = {"backend": backend, "threads": threads, "progress": not (quiet or dry_run)}
    pairer = make_pairer(x1, settings, vocabulary_size=metadata.dimensions[1], **options)
    with provenance.uncounted():
        pairer.compile()
    if dry_run:
        return _estimate(_describe(x1, settings), len(x1), pairer.sources)
    first, last = _rows(len(x1), shard)
    written = _metadata(settings, metadata, tokens, shard and {"rows": [first, last], "of": len(x1)})
    table = _open(out, written, resume, provenance)
    x0 = _pair(table, _blocks(first, last, x1.size * (settings.steps or 1) // settings.subsets), pairer)
    _write(table, x0, x1[first:last], metadata.dimensions[1])


def _pair_points(
    settings: PairSettings,
    path: Path,
    out: Path,
    backend: str,
    shard: tuple[int, int] | None,
    dry_run: bool,
    resume: ResumeOptions,
    provenance: Provenance,
    threads: int | None,
) -> None:
    """Write pairs of sources and data points, with the data point's row and how far the walk's end was."""
    from pairflow.artifacts.points import points_of
    from pairflow.pairing.continuous import pair_continuous
    from pairflow.runtime.device import choose

    if backend == "reference" or out.suffix == ".npy":
        raise InputError("--flow continuous: writes pairs (.parquet), by the backend auto, cpu or gpu")
    source, metadata = read_table(path, "vectors", "tokens")
    points = points_of(source, metadata)
    first, last = _rows(len(points), shard)
    weights = (last - first) * len(points) * (settings.steps or 1)
    device = choose(
        {"gpu": "cuda"}.get(backend, backend), 1 if weights < FEW_WEIGHTS else threads, provenance
    )

    def walk(rows: BlockKey) -> np.ndarray:
        walked = pair_continuous(
            points,
            steps=settings.steps or 1,
            seed=settings.seed,
            device=device,
            rows=(rows[0], rows[1]),
            progress=False,
        )
        return np.column_stack([walked.target, walked.moved])

    if dry_run:
        numbers = points[0].size
        return _estimate(f"{last - first:,} of {numbers} numbers, {weights:.2g} weights", last - first, walk)
    metadata = _metadata(settings, metadata, path, shard and {"rows": [first, last], "of": len(points)})
    written = replace(metadata, kind=metadata.kind.replace("pairs", "vector pairs"))
    table = _open(out, written, resume, provenance, device)
    walks = np.concatenate(table.make(_blocks(first, last, points.size * (settings.steps or 1)), walk))
    target, length = walks[:, 0].astype(np.int64), metadata.length or 0
    x0 = rng.normals(settings.seed, np.arange(first, last), length)  # those that have walked
    columns = {"x0": row_column(x0), "x1": row_column(points.reshape(len(points), length)[target])}
    table.write(pa.table(columns | {"target": target, "moved": walks[:, 1].astype(np.float32)}))


def _write(table: ResumableTable, x0: np.ndarray, x1: np.ndarray, vocabulary_size: int) -> None:
    """Write the pairs, or only the sources if the file is an array."""
    if table.out.suffix == ".npy":
        table.write_array(x0.astype(token_dtype(vocabulary_size), copy=False))
    else:
        columns = {"x0": x0, "x1": x1}
        table.write(pa.table({name: token_column(rows, vocabulary_size) for name, rows in columns.items()}))


def _check_suffix(out: Path, shard: tuple[int, int] | None) -> None:
    """InputError unless pairs, or the shard of them, can be written to a file of that name."""
    if out.suffix not in (".parquet", ".npy"):
        raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .parquet or .npy")
    if shard and out.suffix == ".npy":
        raise InputError(f"{out}: a shard is written as .parquet, which `pairflow gather` joins")


def _pair(table: ResumableTable, ranges: list[tuple[int, int]], pairer: Pairer | RowwisePairer) -> np.ndarray:
    """The sources of all ranges; records where they were computed."""

    def name_device() -> None:
        table.provenance.device = "cuda" if pairer.on_gpu else "cpu"
        table.provenance.device_memory_mb = gpu.held_memory_mb if pairer.on_gpu else None

    name_device()
    x0 = np.concatenate(table.make(ranges, pairer.sources))
    name_device()  # the CPU may have taken over
    return x0


def _metadata(settings: PairSettings, metadata: Metadata, tokens: Path, shard: dict | None) -> Metadata:
    """The metadata of the pairs of these token rows, or of a shard of them."""
    return replace(
        metadata,
        kind="shard of pairs" if shard else "pairs",
        parameters={**settings.model_dump(mode="json"), **(shard or {})},
        inputs={"tokens": digest(tokens)},
    )


def _open(
    out: Path, wanted: Metadata, resume: ResumeOptions, provenance: Provenance, device: Any = None
) -> ResumableTable:
    """The table of these pairs; InputError if `out` exists and was made from something else."""
    _check_output(out, wanted)
    return ResumableTable(out, wanted, wanted.parameters["coupling"], resume, provenance, device)


def _check_output(out: Path, wanted: Metadata) -> None:
    """InputError if `out` exists and was made from something else."""
    if not out.exists():
        return
    if out.suffix == ".npy":
        raise InputError(f"{out}: already exists; remove it or choose another --out")
    _, existing = read_table(out, wanted.kind)
    if existing.inputs != wanted.inputs:
        raise InputError(
            f"{out}: already exists and holds pairs of other tokens; remove it or choose another --out"
        )
    parameters = {"K": existing.vocabulary_size, **existing.parameters}
    for key, value in {"K": wanted.vocabulary_size, **wanted.parameters}.items():
        if parameters.get(key) != value:
            raise InputError(
                f"{out}: exists, with {key} {parameters.get(key)} instead of {value}; "
                "remove it or choose another --out"
            )


def _rows(count: int, shard: tuple[int, int] | None) -> tuple[int, int]:
    """The rows first..last - 1 of a shard; all rows without a shard."""
    number, shards = shard or (1, 1)
    if shards > count:
        raise InputError(
            f"--shard: {shards} shards are too many for {count} rows, because some "
            f"would be empty; choose fewer shards"
        )
    return count * (number - 1) // shards, count * number // shards


def _blocks(first: int, last: int, comparisons: int) -> list[tuple[int, int]]:
    """Ranges of rows with about BLOCK token comparisons each; one row takes `comparisons`."""
    size = max(1, BLOCK // max(1, comparisons))
    return [(start, min(start + size, last)) for start in range(first, last, size)]


def _describe(x1: np.ndarray, settings: PairSettings) -> str:
    """How large a pairing of token rows is."""
    comparisons = len(x1) * x1.size * (settings.steps or 0) / settings.subsets
    return f"{len(x1):,} of {x1.shape[1]} tokens, {comparisons:.2g} token comparisons"


def _estimate(size: str, count: int, pair: Callable[[BlockKey], np.ndarray]) -> None:
    """Pair a few rows, and print what all of them would take."""
    probe = extrapolated(lambda rows: pair((0, rows)), count, seconds=PROBE_SECONDS)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    click.echo(f"rows: {size}")
    click.echo(f"time: about {probe.seconds:,.0f} s, from {probe.rows:,} rows in {probe.measured:.1f} s")
    click.echo(f"memory: about {memory:.1f} GB")


def _read(path: Path, vocabulary_size: int | None) -> tuple[np.ndarray, Metadata]:
    if path.suffix != ".npy":
        table, metadata = read_table(path, "tokens")
        if vocabulary_size not in (None, metadata.vocabulary_size):
            raise InputError(
                f"{path}: K = {metadata.vocabulary_size}, but --vocabulary-size says {vocabulary_size}"
            )
        return token_array(table["tokens"]), metadata
    if vocabulary_size is None:
        raise InputError(f"{path}: --vocabulary-size is needed with a .npy file")
    rows = read_rows(path, vocabulary_size)
    return rows, Metadata(kind="tokens", length=rows.shape[1], vocabulary_size=vocabulary_size)


if __name__ == "__main__":
    main()
