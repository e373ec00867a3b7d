"""Signals that ask long work to stop, and what it may do before it does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP = (signal.SIGTERM, signal.SIGINT)  # save, then stop
SAVE = signal.SIGUSR1  # save and go on: a scheduler's warning that the time is nearly up


class Stopped(BaseException):
    """One of the signals has come, `number`."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


@contextmanager
def kept(alone: bool = True) -> Iterator[list[int]]:
    """The signals that have come since, in order. A second Ctrl-C has its usual effect, at once.

    A second SIGTERM has none: SLURM sends one of its own, and its srun another. Outside the main thread,
    where Python hands out no signals, none ever comes. A process that is not `alone` may get each twice, from
    a scheduler and from torchrun, and keeps them all; if it loses the others and was asked to stop, one of
    them has failed before and said why: it ends without a word.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def keep(number: int, frame) -> None:
        received.append(number)
        if alone and number == signal.SIGINT:
            signal.signal(number, before[number])

    before = {number: signal.signal(number, keep) for number in (*STOP, SAVE)}
    try:
        yield received
    except RuntimeError:
        if not alone and any(number in STOP for number in received):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def raised() -> Iterator[None]:
    """The first signal, SIGUSR1 too, raises Stopped wherever the work is; the next has its usual effect.

    For work whose finished parts are apart from what it is at. Outside the main thread none ever comes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame) -> None:
        hand_back()
        raise Stopped(number)

    def hand_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, stop) for number in (*STOP, SAVE)}
    try:
        yield
    finally:
        hand_back()
