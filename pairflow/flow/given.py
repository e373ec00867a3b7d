"""Tokens that a user fixes before sampling: the start of a row, possibly with free positions.

A prefix fixes every token as written. In a template, `*` leaves one position free. The positions after either
are free.
"""

import torch
from torch import Tensor

from pairflow.config import DemandSettings
from pairflow.errors import InputError
from pairflow.flow.samplers import FREE

OPEN = "*"  # a free position of a template


def given_start(settings: DemandSettings) -> tuple[str | None, str]:
    """Return the text that every row starts with (or None), and the name of the option that gives it."""
    return (settings.prefix, "prefix") if settings.template is None else (settings.template, "template")


def given_row(option: str, lead: list[int], tokens: list[int], length: int, room: int) -> Tensor:
    """Return a row (N,), N = `length`, with `lead`, then `tokens`, and FREE (-1) in the rest.

    `lead` are tokens that begin every row, `tokens` the user's, FREE at open positions. Raises InputError,
    which begins with the `option` that gave them, if there are more than `room` tokens, or all are FREE.
    """
    if len(tokens) > room:
        raise InputError(f"{option}: too long ({len(tokens)} tokens, limit {room})")
    if all(token == FREE for token in tokens):
        raise InputError(f"{option}: no token is given, only {OPEN}")
    row = torch.full((length,), FREE)
    row[: len(lead) + len(tokens)] = torch.tensor([*lead, *tokens])
    return row


def count_given(given: Tensor | None) -> int:
    """Return the number of positions up to the last fixed symbol of a row; 0 without a row."""
    return 0 if given is None else int((given != FREE).nonzero().max()) + 1
