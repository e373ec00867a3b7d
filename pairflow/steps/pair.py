"""Token rows to pairs (x0, x1): a source state for every data point, whole or in shards."""

import functools
import re
import resource
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

import pairflow
from pairflow import rng
from pairflow.artifacts import (
    Metadata,
    Provenance,
    atomic,
    digest,
    read_table,
    token_array,
    token_column,
    write_table,
)
from pairflow.config import PairSettings
from pairflow.errors import InputError
from pairflow.pairing.gpu import engine as gpu
from pairflow.pairing.pair import BACKENDS, checked_tokens, runs_on_gpu
from pairflow.pairing.probe import extrapolated
from pairflow.runtime import gpus
from pairflow.runtime.resume import Blocks, folder_of, remove
from pairflow.steps.command import existing, out, quiet, resumable, step, threads

BLOCK = 2 * 10**13  # token comparisons that are saved or lost together: about a minute on two cores
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
    "--tokens", help="Token rows: Parquet of `pairflow preprocess`, or a .npy array (M, N) of integers."
)
@out("--out", help="Pairs, Parquet: x0, x1, one row per data point, in data order.")
@click.option("--vocabulary-size", type=int, help="K; needed for .npy alone.")
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="Same bytes by each; auto: the GPU if there is one, else the CPU.",
)
@click.option(
    "--shard", type=_Shard(), help="Pair only the k-th of P equal ranges of rows, for `pairflow gather`."
)
@resumable
@click.option("--dry-run", is_flag=True, help="Print operations, time and memory; write nothing.")
@threads
@quiet
def main(
    settings: PairSettings,
    tokens,
    out,
    vocabulary_size,
    backend,
    shard,
    resume,
    save_every,
    dry_run,
    threads,
    quiet,
):
    """Give every data point its source: by Algorithm 1 (pairflow), or independent uniform noise (random).

    A long pairing that was interrupted goes on where it stopped. Its bytes depend on the tokens, K, steps,
    subsets and seed alone.
    """
    provenance = Provenance()
    if backend in ("auto", "gpu"):
        gpus.take()
    x1, metadata = _read(tokens, vocabulary_size)
    size = metadata.vocabulary_size
    pair = functools.partial(
        _sources, settings, x1, size, backend=backend, threads=threads, progress=not quiet
    )
    if dry_run:
        return _estimate(settings, x1, pair)
    first, last = _rows(len(x1), shard)
    rows = {} if shard is None else {"rows": [first, last], "of": len(x1)}
    made = Metadata(
        kind="shard of pairs" if shard else "pairs",
        length=x1.shape[1],
        vocabulary_size=size,
        vocabulary=metadata.vocabulary,
        padding=metadata.padding,
        mask=metadata.mask,
        shape=metadata.shape,
        data=metadata.data,
        split=metadata.split,
        parameters={**settings.model_dump(mode="json"), **rows},
        inputs={"tokens": digest(tokens)},
    )
    _check_output(out, made)
    if settings.coupling == "pairflow" and runs_on_gpu(backend):
        provenance.device, provenance.device_memory_mb = "cuda", gpu.held_memory_mb
    resume = resume or out.parent / f".{out.name}.resume"
    states = folder_of(resume, settings.coupling, made.__dict__)
    ranges = _blocks(first, last, x1.size * (settings.steps or 1) // settings.subsets)
    sources = Blocks(ranges, states, save_every, provenance).make(lambda rows: pair(rows=rows))
    columns = {"x0": np.concatenate(sources), "x1": x1[first:last]}
    with atomic(out) as [temporary]:
        table = pa.table({name: token_column(part, size) for name, part in columns.items()})
        write_table(temporary, table, made)
    provenance.write(out)
    remove(states)


def _check_output(out: Path, made: Metadata) -> None:
    """InputError where `out` is there and was made from something else."""
    if not out.exists():
        return
    _, there = read_table(out, made.kind)
    if there.inputs != made.inputs:
        raise InputError(f"{out}: exists, and holds pairs of other tokens; remove it or name another --out")
    found = {"K": there.vocabulary_size, **there.parameters}
    for key, value in {"K": made.vocabulary_size, **made.parameters}.items():
        if found.get(key) != value:
            raise InputError(
                f"{out}: exists, with {key} {found.get(key)} where {value} is asked for; "
                "remove it or name another --out"
            )


def _sources(
    settings: PairSettings, x1, vocabulary_size: int, rows: tuple[int, int], **options
) -> np.ndarray:
    """Source states of a range of rows by either coupling."""
    if settings.coupling == "random":
        return rng.uniform_tokens(settings.seed, np.arange(*rows), x1.shape[1], vocabulary_size)
    return pairflow.pair(
        x1,
        vocabulary_size=vocabulary_size,
        steps=settings.steps,
        subsets=settings.subsets,
        seed=settings.seed,
        rows=rows,
        **options,
    )


def _rows(count: int, shard: tuple[int, int] | None) -> tuple[int, int]:
    """First and last + 1 row of a shard; all where there is none."""
    number, shards = shard or (1, 1)
    if shards > count:
        raise InputError(f"--shard: {shards} shards of {count} rows, some would be empty")
    return count * (number - 1) // shards, count * number // shards


def _blocks(first: int, last: int, comparisons: int) -> list[tuple[int, int]]:
    """Ranges of rows of about BLOCK token comparisons each, `comparisons` being those of one row."""
    size = max(1, BLOCK // max(1, comparisons))
    return [(start, min(start + size, last)) for start in range(first, last, size)]


def _estimate(settings: PairSettings, x1, pair) -> None:
    """Pair a few rows, and say what all of them would take."""
    count = len(x1)
    probe = extrapolated(lambda rows: pair(rows=(0, rows), progress=False), count, seconds=PROBE_SECONDS)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    comparisons = count * x1.size * (settings.steps or 0) / settings.subsets
    click.echo(f"rows: {count:,} of {x1.shape[1]} tokens, {comparisons:.2g} token comparisons")
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
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        rows = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(f"{path}: not a .npy array") from error
    rows = checked_tokens(rows, vocabulary_size)
    return rows, Metadata(kind="tokens", length=rows.shape[1], vocabulary_size=vocabulary_size)


if __name__ == "__main__":
    main()
