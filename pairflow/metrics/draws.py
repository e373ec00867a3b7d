"""Draws of real data, to be compared with other real data as samples are."""

import numpy as np

from pairflow import rng
from pairflow.config import RealDraws


def draw_trials(settings: RealDraws, split: str, rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """(trial, rows) without repetition; a single trial if all rows are drawn."""
    trials = settings.trials if settings.samples < len(rows) else 1
    draws = []
    for trial in range(trials):
        order = rng.random_order(rng.stream_seed(settings.seed, "floor", split, trial), len(rows))
        draws.append((trial, np.sort(rows[order[: settings.samples]])))
    return draws
