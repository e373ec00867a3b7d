"""The paper's Figure 1 on a toy set: how far states are from their data point as noise is added.

A report computes no results; this is an exception. Algorithm 1 on 1,000 rows of 10 tokens takes a moment, and
needs no experiment whose step could compute it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from pairflow import rng
from pairflow.pairing.oracle import backward_states
from pairflow.report import drawing
from pairflow.report.colours import style
from pairflow.report.drawing import Line, Picture
from pairflow.report.kind_page import draw_between

LENGTH, SYMBOLS = 10, 10  # independent sources are N (K-1) / K = 9.0 tokens away, as printed
POINTS, STEPS, SEED = 1000, 20, 0
PRINTED = {"backward": "6.47", "uniform": "9.0"}


@dataclass(frozen=True)
class Illustration:
    """Mean Hamming distance of x_t from its data point, (T+1,) each, at `times` from 1 down to 0.

    `example` has the first row's states at some times: name -> a list of time, distance and tokens.
    """

    times: np.ndarray
    backward: np.ndarray
    uniform: np.ndarray
    example: Mapping[str, list[tuple[float, int, str]]]


def toy_set() -> np.ndarray:
    """Rows (POINTS, LENGTH), uniform over K^N: the paper does not describe its own toy set."""
    return rng.uniform_tokens(rng.stream_seed(SEED, "toy set"), np.arange(POINTS), LENGTH, SYMBOLS)


@cache
def illustrate() -> Illustration:
    """Algorithm 1 on the toy set, and uniform corruption of the same rows with kappa(t) = t."""
    rows, numbers = toy_set(), np.arange(POINTS)
    settings = {"vocabulary_size": SYMBOLS, "steps": STEPS, "seed": SEED}
    times = 1 - np.arange(STEPS + 1) / STEPS
    x0 = rng.uniform_tokens(SEED, numbers, LENGTH, SYMBOLS)
    states = {
        "backward pairing": np.stack([*backward_states(rows, rows, numbers, **settings)]),
        "uniform corruption": draw_between(x0, rows, SEED, tuple(times)).swapaxes(0, 1),
    }
    distances = {name: np.count_nonzero(own != rows, axis=2) for name, own in states.items()}
    shown = range(0, STEPS + 1, 5)
    example = {
        name: [(times[i], int(distances[name][i, 0]), " ".join(map(str, own[i, 0]))) for i in shown]
        for name, own in states.items()
    }
    backward, uniform = (own.mean(axis=1) for own in distances.values())
    return Illustration(times, backward, uniform, example)


def draw_corruption(times: np.ndarray, distances: Mapping[str, np.ndarray], name: str) -> Picture:
    """Mean Hamming distances from the data, (T+1,) per method, at `times` that run from 1 (data) to 0."""
    lines = [Line(method, style(method), times, y, markers=6) for method, y in distances.items()]
    said = {method: f"{values[-1]:.2f} at t = 0" for method, values in distances.items()}
    x, y = "time t (data 1, noise 0)", "tokens that differ from the data"
    with drawing.line_chart(lines, x, y) as (figure, axes):
        axes.invert_xaxis()
        drawing.start_at_zero(axes)
        alt = drawing.describe("Mean Hamming distance from the data by time", said)
        return drawing.finish(figure, name, alt)
