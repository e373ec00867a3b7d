"""The time that a whole pairing takes, extrapolated from a few of its rows."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Probe(NamedTuple):
    """Seconds that all rows take, and the measurement behind them: `rows` rows took `measured` seconds."""

    seconds: float
    rows: int
    measured: float


def extrapolated(
    pair: Callable[[int], object],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
    seconds: float = 3.0,
) -> Probe:
    """The time for `count` rows. `pair(rows)` pairs the first `rows`: ever more, until it takes `seconds`.

    A single row takes as long as the preparation of the keys, which counts once.
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
