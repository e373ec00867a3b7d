"""Compares sets of token rows: by nearest training rows, and by frequencies of n-grams (runs of n tokens).

See docs/metrics.md, "Token rows". Rows are integers (B, N).
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from pairflow.config import RealDraws
from pairflow.kinds.kind import RowFiles
from pairflow.metrics.measured import Machine, Measurement, RealRows, Row
from pairflow.pairing.cpu.compiled import compiled


def measure_samples(samples: Path, files: RowFiles, machine: Machine) -> Measurement:
    real = _read(files, machine)
    return real.measure_samples(
        samples, lambda rows: chain(compare_neighbours(rows, real), compare_frequencies(rows, real))
    )


def measure_floor(settings: RealDraws, files: RowFiles, machine: Machine) -> Measurement:
    """Measure real rows as if they were samples: the n-gram frequencies of training rows, compared with
    those in held-out rows, and the nearest training rows of held-out rows."""
    real = _read(files, machine)
    return real.measure_floor(
        settings,
        train=lambda rows: compare_frequencies(rows, real),
        test=lambda rows: compare_neighbours(rows, real),
    )


def _read(files: RowFiles, machine: Machine) -> RealRows:
    """Read the real rows, and compile `nearest_hamming` before its time is recorded."""
    real = RealRows.read(*files)
    with machine.provenance.uncounted():
        nearest_hamming(real.train[:1], real.train[:1])
    return real


def compare_neighbours(rows: np.ndarray, real: RealRows) -> Iterator[Row]:
    """Measure how near rows are to training rows (`nn_hamming`, the mean number of tokens that differ from
    the nearest row; `copies`, the share of equal rows), and the share of different rows (`distinct`)."""
    distance = nearest_hamming(rows, real.train)
    yield {"metric": "nn_hamming", "value": float(distance.mean()), "reference": "train"}
    yield {"metric": "copies", "value": float((distance == 0).mean()), "reference": "train"}
    yield {"metric": "distinct", "value": len(np.unique(rows, axis=0)) / len(rows), "reference": None}


def compare_frequencies(rows: np.ndarray, real: RealRows) -> Iterator[Row]:
    """Compare the n-gram frequencies of rows and of held-out rows by total variation: `unigram_tv` and, if
    rows have at least two tokens, `bigram_tv`."""
    for size, metric in ((1, "unigram_tv"), (2, "bigram_tv")):
        if rows.shape[1] >= size:
            value = ngram_distance(rows, real.held_out, size)
            yield {"metric": metric, "value": value, "reference": "test"}


def nearest_hamming(rows: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Count positions in which each row (B, N) differs from the nearest row of `data` (M, N): (B,) int64."""
    best = np.empty(len(rows), np.int64)
    _nearest(np.ascontiguousarray(rows), np.ascontiguousarray(data), best)
    return best


@compiled
def _nearest(rows: np.ndarray, data: np.ndarray, best: np.ndarray) -> None:
    length = rows.shape[1]
    for i in range(len(rows)):
        smallest = np.int32(length)
        for k in range(len(data)):
            distance = np.int32(0)  # 32 bits are twice as fast as 64, by vector instructions
            for j in range(length):
                distance += np.int32(rows[i, j] != data[k, j])
            smallest = min(smallest, distance)
        best[i] = smallest


def ngram_distance(rows: np.ndarray, others: np.ndarray, size: int) -> float:
    """Return the distance between the n-gram frequencies of two sets of rows, (B, N) and (V, N).

    It is the total variation between the n-grams of `size` tokens that begin at one position, averaged over
    the N - size + 1 positions.
    """
    symbols = int(max(rows.max(), others.max())) + 1
    distances = [
        total_variation(_codes(rows, start, size, symbols), _codes(others, start, size, symbols))
        for start in range(rows.shape[1] - size + 1)
    ]
    return float(np.mean(distances))


def _codes(rows: np.ndarray, start: int, size: int, symbols: int) -> np.ndarray:
    """Number the n-grams that begin at position `start` of each row: (B,) int64, equal for equal n-grams."""
    codes = rows[:, start].astype(np.int64)
    for offset in range(1, size):
        codes = codes * symbols + rows[:, start + offset]
    return codes


def total_variation(one: np.ndarray, other: np.ndarray) -> float:
    """Return the total variation distance between the values in two arrays of integers: half the sum over
    values of |p - q|, where p and q are the shares of a value in the arrays."""
    values, codes = np.unique(np.concatenate([one, other]), return_inverse=True)
    p, q = (np.bincount(part, minlength=len(values)) / len(part) for part in np.split(codes, [len(one)]))
    return float(np.abs(p - q).sum() / 2)
