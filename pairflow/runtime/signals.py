"""Signals that ask long work to stop, and what it may do before it does."""

import signal
import threading
from collections.abc import Callable, Iterator
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
def raised(save: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT raise Stopped wherever the work is; SIGUSR1 calls `save`, and the work goes on.

    For work whose finished parts are apart from what it is at. A second Ctrl-C has its usual effect, a second
    SIGTERM none, as in `kept`. Outside the main thread none ever comes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopped = False

    def stop(number: int, frame) -> None:
        nonlocal stopped
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        signal.signal(SAVE, signal.SIG_IGN)
        if not stopped:
            stopped = True
            raise Stopped(number)

    def heed(number: int, frame) -> None:
        signal.signal(SAVE, signal.SIG_IGN)
        save()
        signal.signal(SAVE, heed)

    before = {number: signal.signal(number, stop) for number in STOP}
    before[SAVE] = signal.signal(SAVE, heed)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def unheeded() -> Iterator[None]:
    """SIGUSR1 ends nothing: where there is no state to save the work goes on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(SAVE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(SAVE, before)
