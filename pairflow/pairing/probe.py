"""Prepares work on rows like real ones, and measures its time."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pairflow.artifacts import token_dtype
from pairflow.config.training import TAU

Step = Callable[[int], object]  # does the work on a number of rows


def make_rows(count: int, length: int, vocabulary_size: int) -> np.ndarray:
    """Make `count` rows (M, N) in clusters: copies of centres, with three tenths of the tokens redrawn.

    So they are like real rows. If `vocabulary_size` is 0, they are normal random numbers without clusters.
    """
    generator = np.random.default_rng(0)
    if not vocabulary_size:
        return generator.standard_normal((count, length), np.float32)
    shape, dtype = (max(1, count // 50), length), token_dtype(vocabulary_size)
    centres = generator.integers(vocabulary_size, size=shape, dtype=dtype)
    rows = centres[generator.integers(len(centres), size=count)]
    for part in np.array_split(rows, -(-len(rows) // 100_000)):  # views, so that millions of rows fit
        redrawn = generator.random(part.shape) < 0.3
        np.copyto(part, generator.integers(vocabulary_size, size=part.shape, dtype=dtype), where=redrawn)
    return rows


def prepare_pairing(rows: np.ndarray, vocabulary_size: int, steps: int, noise: str, device: str) -> Step:
    """Return a function that pairs a given number of `rows` by Algorithm 1, to measure its time."""
    from pairflow.pairing.pair import pair

    how: dict[str, Any] = {"vocabulary_size": vocabulary_size, "steps": steps, "noise": noise}
    how |= {"backend": "gpu" if device == "cuda" else "cpu", "threads": 1, "progress": False}

    def step(count: int) -> None:
        # A GPU may take more than the measured rows: pair them again.
        for first in range(0, count, len(rows)):
            pair(rows, **how, rows=(0, min(len(rows), count - first)))

    return step


def prepare_leading(rows: np.ndarray, vocabulary_size: int, device: str) -> Step:
    """Return a function that assigns a given number of sources to the data `rows`, to measure its time.

    The potentials are random; good ones would take as long.
    """
    import torch

    from pairflow.pairing.spaces import space_of

    space = space_of(rows, vocabulary_size, torch.device(device))
    potentials = np.random.default_rng(0).normal(0, 2, len(rows)).round().astype(np.int64)
    law = space.law(potentials.max() - potentials, TAU)

    def step(count: int) -> object:
        return law.draw(space.sources(0, np.arange(count)), np.arange(count), 0, threads=1)

    return step


class Probe(NamedTuple):
    """The `seconds` that all rows would take, extrapolated from `rows` rows that took `measured` seconds."""

    seconds: float
    rows: int
    measured: float


def extrapolated(
    pair: Callable[[int], object],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
    seconds: float = 3.0,
) -> Probe:
    """Estimate the time for `count` rows, by calling `pair` with larger and larger numbers of rows.

    The calls end when one takes `seconds` more than a call with one row. This first call measures the
    preparation of the keys, which is needed only once, however many rows there are. Returns the estimate, the
    rows of the largest call, and its time, in seconds of `clock`.
    """

    def measure(rows: int) -> float:
        started = clock()
        pair(rows)
        return clock() - started

    measure(1)  # compiles
    single, rows = measure(1), 1
    measured = single
    while rows < count and measured < single + seconds:
        rows = min(count, 4 * rows)
        measured = measure(rows)
    return Probe(single + (measured - single) / max(1, rows - 1) * (count - 1), rows, measured)
