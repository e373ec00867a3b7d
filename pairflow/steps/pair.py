"""Token rows to pairs (x0, x1): a source state for every data point."""

from pathlib import Path

import click
import numpy as np
import pyarrow as pa

import pairflow
from pairflow import rng
from pairflow.artifacts import (
    Science,
    Stopwatch,
    atomic,
    digest,
    read_table,
    token_array,
    token_column,
    write_table,
)
from pairflow.config import PairSettings
from pairflow.errors import InputError
from pairflow.pairing.engine import checked_tokens
from pairflow.steps._command import existing, out, quiet, step, threads


@step(PairSettings)
@existing(
    "--tokens",
    help="Token rows: a Parquet file of `pairflow preprocess`, or a .npy array (M, N) of integers.",
)
@out("--out", help="Pairs, Parquet: x0, x1, one row per data point, in data order.")
@click.option("--vocabulary-size", type=int, help="K; needed for .npy alone.")
@click.option(
    "--backend", type=click.Choice(["auto", "cpu", "gpu", "reference"]), default="auto", show_default=True
)
@threads
@quiet
def main(settings: PairSettings, tokens, out, vocabulary_size, backend, threads, quiet):
    """Give every data point its source: by Algorithm 1 (pairflow), or independent uniform noise (random)."""
    stopwatch = Stopwatch()
    x1, science = _read(tokens, vocabulary_size)
    if settings.coupling == "random":
        x0 = rng.uniform_tokens(settings.seed, np.arange(len(x1)), science.length, science.vocabulary_size)
    else:
        x0 = pairflow.pair(
            x1,
            vocabulary_size=science.vocabulary_size,
            steps=settings.steps,
            subsets=settings.subsets,
            seed=settings.seed,
            backend=backend,
            threads=threads,
            progress=not quiet,
        )
    columns = {name: token_column(rows, science.vocabulary_size) for name, rows in (("x0", x0), ("x1", x1))}
    made = Science(
        kind="pairs",
        length=science.length,
        vocabulary_size=science.vocabulary_size,
        vocabulary=science.vocabulary,
        padding=science.padding,
        parameters=settings.model_dump(mode="json"),
        inputs={"tokens": digest(tokens)},
    )
    with atomic(out) as [temporary]:
        write_table(temporary, pa.table(columns), made)
    stopwatch.write(out)


def _read(path: Path, vocabulary_size: int | None) -> tuple[np.ndarray, Science]:
    if path.suffix != ".npy":
        table, science = read_table(path, "tokens")
        if vocabulary_size not in (None, science.vocabulary_size):
            raise InputError(
                f"{path}: K = {science.vocabulary_size}, but --vocabulary-size says {vocabulary_size}"
            )
        return token_array(table["tokens"]), science
    if vocabulary_size is None:
        raise InputError(f"{path}: --vocabulary-size is needed with a .npy file")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        rows = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(f"{path}: not a .npy array") from error
    rows = checked_tokens(rows, vocabulary_size)
    return rows, Science(kind="tokens", length=rows.shape[1], vocabulary_size=vocabulary_size)


if __name__ == "__main__":
    main()
