"""Distances between sets of token rows: to the nearest training row, and of n-gram frequencies.

See docs/metrics.md, "Token rows". Rows are integers (B, N).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.errors import InputError
from pairflow.pairing.cpu.compiled import compiled


@dataclass(frozen=True)
class RealRows:
    """The training rows (M, N) and the held-out rows (V, N) that samples are compared with."""

    train: np.ndarray
    held_out: np.ndarray
    path: Path
    metadata: Metadata
    inputs: dict[str, str]

    @classmethod
    def read(cls, train: Path, validation: Path) -> "RealRows":
        """Read the files; InputError unless they are the two parts of one data set."""
        (rows, metadata), (others, held_out) = (read_table(path, "tokens") for path in (train, validation))
        metadata.require_same_vocabulary(held_out.vocabulary, train, validation)
        metadata.require_same_data(held_out.data, train, validation)
        metadata.require_split("train", train)
        held_out.require_split("validation", validation)
        if not len(others):
            raise InputError(f"{validation}: holds no rows; samples are compared with held-out rows")
        inputs = {"tokens": digest(train), "validation": digest(validation)}
        return cls(token_array(rows["tokens"]), token_array(others["tokens"]), train, metadata, inputs)

    def read_samples(self, path: Path) -> tuple[np.ndarray, np.ndarray, Metadata]:
        """Samples (B, N) of a model of these data, the trial of each, and their metadata."""
        table, metadata = read_table(path, "samples")
        metadata.require_same_data(self.metadata.data, path, self.path)
        if metadata.dimensions != self.metadata.dimensions:
            raise InputError(
                f"{path}: expected (N, K) = {self.metadata.dimensions} as in {self.path}, "
                f"found {metadata.dimensions}"
            )
        return token_array(table["tokens"]), table["trial"].to_numpy(), metadata


def measure(rows: np.ndarray, real: RealRows) -> Iterator[dict[str, Any]]:
    """The metric rows of a trial's samples (B, N)."""
    yield from compare_neighbours(rows, real)
    yield from compare_frequencies(rows, real)


def compare_neighbours(rows: np.ndarray, real: RealRows) -> Iterator[dict[str, Any]]:
    """`nn_hamming` and `copies` against the training rows, and the share of `distinct` rows."""
    distance = nearest_hamming(rows, real.train)
    yield {"metric": "nn_hamming", "value": float(distance.mean()), "reference": "train"}
    yield {"metric": "copies", "value": float((distance == 0).mean()), "reference": "train"}
    yield {"metric": "distinct", "value": len(np.unique(rows, axis=0)) / len(rows), "reference": None}


def compare_frequencies(rows: np.ndarray, real: RealRows) -> Iterator[dict[str, Any]]:
    """`unigram_tv`, and for rows of two tokens or more `bigram_tv`, against the held-out rows."""
    for size, metric in ((1, "unigram_tv"), (2, "bigram_tv")):
        if rows.shape[1] >= size:
            value = ngram_distance(rows, real.held_out, size)
            yield {"metric": metric, "value": value, "reference": "test"}


def nearest_hamming(rows: np.ndarray, data: np.ndarray) -> np.ndarray:
    """(B,) int64: the number of positions in which each row differs from the nearest row of data (M, N)."""
    best = np.empty(len(rows), np.int64)
    _nearest(np.ascontiguousarray(rows), np.ascontiguousarray(data), best)
    return best


@compiled
def _nearest(rows: np.ndarray, data: np.ndarray, best: np.ndarray) -> None:
    length = rows.shape[1]
    for i in range(len(rows)):
        smallest = np.int32(length)
        for k in range(len(data)):
            distance = np.int32(0)  # in 32 bits the sum is vectorised twice as wide
            for j in range(length):
                distance += np.int32(rows[i, j] != data[k, j])
            smallest = min(smallest, distance)
        best[i] = smallest


def ngram_distance(rows: np.ndarray, others: np.ndarray, size: int) -> float:
    """Mean over positions of the total variation between n-gram frequencies of (B, N) and (V, N).

    The n-gram of a position is the `size` tokens that begin there, so that there are N - size + 1 positions.
    """
    symbols = int(max(rows.max(), others.max())) + 1
    distances = [
        total_variation(_codes(rows, start, size, symbols), _codes(others, start, size, symbols))
        for start in range(rows.shape[1] - size + 1)
    ]
    return float(np.mean(distances))


def _codes(rows: np.ndarray, start: int, size: int, symbols: int) -> np.ndarray:
    """(B,) int64: a number for the n-gram at one position of each row."""
    codes = rows[:, start].astype(np.int64)
    for offset in range(1, size):
        codes = codes * symbols + rows[:, start + offset]
    return codes


def total_variation(one: np.ndarray, other: np.ndarray) -> float:
    """Half the sum of |p - q| over the values of two integer arrays, p and q their relative frequencies."""
    _, places = np.unique(np.concatenate([one, other]), return_inverse=True)
    p, q = (
        np.bincount(part, minlength=places.max() + 1) / len(part) for part in np.split(places, [len(one)])
    )
    return float(np.abs(p - q).sum() / 2)


def compile_for(real: RealRows) -> None:
    """Compile what finds the nearest rows of these data, so that it costs no time later."""
    nearest_hamming(real.train[:1], real.train[:1])
