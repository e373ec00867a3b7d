"""Handles the signals that ask long work to save its state or to stop."""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from pairflow.errors import Interrupted

STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # save, then stop; SIGHUP: the terminal has closed
SAVE = signal.SIGUSR1  # save and continue: a scheduler's warning that the time is nearly up
_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
Handler = Callable[[int, FrameType | None], object] | int | None  # of a signal, as `signal.signal` takes it


class Stopped(BaseException):
    """Raised in `interruptible` work when a signal of STOP arrives, with its `number`."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


@contextmanager
def _handled(handlers: Mapping[int, Handler]) -> Iterator[dict[int, Handler]]:
    """Install handlers (signal number -> handler) during the block. Yields the previous handlers.

    Python delivers signals only to the main thread: in another thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield {}
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stopping() -> list[signal.Signals]:
    """Return the signals of STOP, without SIGHUP if it is ignored, as under `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in STOP if number != signal.SIGHUP or not ignored]


@contextmanager
def collect(sole_process: bool = True) -> Iterator[list[int]]:
    """Collect the numbers of signals that ask to stop (SIGTERM, SIGINT, SIGHUP) or to save (SIGUSR1) and
    arrive during the block, in a list that the work reads between its steps.

    A second Ctrl-C acts at once; a second SIGTERM does nothing, because SLURM and its srun both send one.
    Outside the main thread the list stays empty.

    Set `sole_process` to False in one of torchrun's processes. It may get a signal twice, from the scheduler
    and from torchrun, and collects both. If it has been asked to stop and a RuntimeError follows, the other
    processes are gone and one has reported the reason: this one then ends silently by SIGTERM.
    """
    received: list[int] = []

    def append(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if sole_process and number == signal.SIGINT:  # torchrun repeats a first Ctrl-C to each process
            signal.signal(number, before[signal.SIGINT])

    with _handled(dict.fromkeys((*_stopping(), SAVE), append)) as before:
        try:
            yield received
        except RuntimeError:
            if not sole_process and any(number in STOP for number in received):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.raise_signal(signal.SIGTERM)
            raise


@contextmanager
def interruptible(save: Callable[[], object]) -> Iterator[None]:
    """In the block, a signal to stop (SIGTERM, SIGINT, SIGHUP) raises Stopped at once; SIGUSR1 calls `save`,
    and the work continues.

    This is for work whose finished parts stay valid if the current part is abandoned. A second Ctrl-C acts at
    once and a second SIGTERM does nothing, as in `collect`. Outside the main thread no signal arrives.
    """
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        signal.signal(SAVE, signal.SIG_IGN)
        if not stopped:
            stopped = True
            raise Stopped(number)

    def warn(number: int, frame: FrameType | None) -> None:
        signal.signal(SAVE, signal.SIG_IGN)
        save()
        signal.signal(SAVE, warn)

    with _handled({**dict.fromkeys(_stopping(), stop), SAVE: warn}) as before:
        yield


@contextmanager
def for_a_command() -> Iterator[None]:
    """In the block, Ctrl-C raises KeyboardInterrupt, even if a library turns it into another error.

    SIGUSR1 is ignored: by default it would end a process, although there is no state to save.
    """
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    handlers: dict[int, Handler] = {SAVE: signal.SIG_IGN}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # background jobs of a shell ignore it
        handlers[signal.SIGINT] = interrupt
    with _handled(handlers):
        try:
            yield
        except Exception as error:
            if interrupted and not isinstance(error, Interrupted):
                raise KeyboardInterrupt from error
            raise


@contextmanager
def noticed(number: int) -> Iterator[threading.Event]:
    """Yield an event that is set if the signal `number` arrives during the `with` block. The earlier handler
    of the signal is called as well."""
    event, before = threading.Event(), signal.getsignal(number)

    def notice(number: int, frame: FrameType | None) -> None:
        event.set()
        if callable(before):
            before(number, frame)

    with _handled({number: notice} if callable(before) else {}):
        yield event


def leave(number: int) -> NoReturn:
    """End this process after a signal, with exit code 128 + `number`, as shells give it.

    It ends at once: deleting objects that the signal left half-built, such as llvmlite's, could crash Python.
    """
    exit_at_once(128 + number)


def exit_at_once(code: int) -> NoReturn:
    """End this process without deleting any object first: no destructor runs, and no thread is waited for."""
    with suppress(OSError):  # the reader of a pipe may have ended
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def end_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends, so that no worker outlives its step."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
