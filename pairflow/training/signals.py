"""Signals that ask a long run to stop, kept until it has a moment to save its state."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP = (signal.SIGTERM, signal.SIGINT)  # save, then stop
SAVE = signal.SIGUSR1  # save and go on: a scheduler's warning that the time is nearly up


@contextmanager
def kept() -> Iterator[list[int]]:
    """The signals that have come since, in order. A second one of a kind has its usual effect, at once.

    Outside the main thread, where Python hands out no signals, none ever comes.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def keep(number: int, frame) -> None:
        received.append(number)
        if number in STOP:
            signal.signal(number, before[number])

    before = {number: signal.signal(number, keep) for number in (*STOP, SAVE)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
