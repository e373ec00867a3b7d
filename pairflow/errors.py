"""Errors that a user can act on."""


class InputError(ValueError):
    """A mistake in what the user gave: one line that says what, where, what was expected and what was found.

    Commands print the line without a traceback and exit with code 2.
    """
