"""A time limit on what a test calls in its own process."""

import contextlib
import signal
from collections.abc import Iterator


class Late(BaseException):
    """A call takes too long. No code that handles errors catches it."""


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raises Late in the main thread after so many seconds."""

    def stop(*_: object) -> None:
        raise Late(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
