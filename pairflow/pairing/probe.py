"""What a whole pairing takes, from a few of its rows."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Probe(NamedTuple):
    """Seconds of all rows, and on what they rest: so many rows, so many seconds."""

    seconds: float
    rows: int
    measured: float


def extrapolated(
    pair: Callable[[int], object],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
    seconds: float = 3.0,
) -> Probe:
    """Of `count` rows, by `pair(rows)`, which pairs the first `rows`: more and more until it takes `seconds`.

    What a single row takes is the preparation of the keys; it is counted once.
    """

    def once(rows: int) -> float:
        started = clock()
        pair(rows)
        return clock() - started

    once(1)  # compiles
    alone, rows = once(1), 1
    measured = alone
    while rows < count and measured < alone + seconds:
        rows = min(count, 4 * rows)
        measured = once(rows)
    return Probe(alone + (measured - alone) / max(1, rows - 1) * (count - 1), rows, measured)
