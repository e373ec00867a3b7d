"""Errors that a user can act on."""


class InputError(ValueError):
    """A mistake in what the user gave: one line that says what, where, what was expected and what was found.

    Commands print the line without a traceback and exit with code 2.
    """


class Interrupted(Exception):
    """A signal stopped long work, whose state is saved if it can be resumed; the message says so.

    Commands print the line without a traceback and exit with code 128 + `signal`, as shells do.
    """

    def __init__(self, message: str, signal: int):
        super().__init__(message)
        self.signal = signal
