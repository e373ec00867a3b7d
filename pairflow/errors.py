"""Errors that a user can act on."""

from typing import Any


class InputError(ValueError):
    """A mistake in the user's input. The message is one line: where, what was expected, and what was found.

    Commands print the line without a traceback and exit with code 2.
    """


class Interrupted(Exception):
    """A signal stopped long work. The message says whether its state was saved.

    Commands print the line without a traceback and exit with code 128 + `signal`, as shells do. `unfinished`
    is what the work has made so far, or None.
    """

    def __init__(self, message: str, signal: int, unfinished: Any = None):
        super().__init__(message)
        self.signal, self.unfinished = signal, unfinished
