"""Tokens that a user gives, which sampling keeps: the start of a row, perhaps with open places.

In a prefix every token counts as written. In a template `*` is an open place of one token. What follows is
open in both.
"""

import torch
from torch import Tensor

from pairflow.config import DemandSettings
from pairflow.errors import InputError
from pairflow.flow.samplers import FREE

OPEN = "*"


def given_start(settings: DemandSettings) -> tuple[str | None, str]:
    """The start of each row, and the name of the option that gives it."""
    return (settings.prefix, "prefix") if settings.template is None else (settings.template, "template")


def given_row(option: str, lead: list[int], tokens: list[int], length: int, room: int) -> Tensor:
    """The symbols (N,) of a row that begins with `lead` and `tokens`, FREE where it is open.

    InputError if more than `room` tokens are given, or none.
    """
    if len(tokens) > room:
        raise InputError(f"{option}: too long ({len(tokens)} tokens, limit {room})")
    if all(token == FREE for token in tokens):
        raise InputError(f"{option}: no token is given, only {OPEN}")
    row = torch.full((length,), FREE)
    row[: len(lead) + len(tokens)] = torch.tensor([*lead, *tokens])
    return row


def count_given(given: Tensor | None) -> int:
    """How many places of a row reach to its last given symbol."""
    return 0 if given is None else int((given != FREE).nonzero().max()) + 1
