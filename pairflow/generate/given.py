"""Tokens that a user gives, which sampling keeps: the start of a row, perhaps with open places.

In a prefix every token counts as written. In a template `*` is an open place of one token, even where the
vocabulary has the dummy atom `*`. What follows is open in both. With SELFIES a prefix is a whole molecule, to
whose last atom the rest is bonded, and there are no templates: a gap in SMILES is none in SELFIES.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pairflow.errors import InputError
from pairflow.flow.samplers import FREE
from pairflow.kinds.molecules.settings import DemandSettings
from pairflow.kinds.text.tokenisers import Tokeniser

if TYPE_CHECKING:
    from pairflow.kinds.molecules.prepare import Vocabulary

OPEN = "*"


def given_molecule(settings: DemandSettings, vocabulary: "Vocabulary", length: int) -> Tensor | None:
    """The symbols (N,) of a molecule's row, FREE where it is open; None without a prefix or template.

    InputError for tokens outside the vocabulary, and if the row is too short.
    """
    from pairflow.kinds.molecules.prepare import BOS

    start, option = _start(settings)
    if start is None:
        return None
    selfies = vocabulary.kind == "selfies"
    if settings.template and selfies:
        raise InputError("template: the model writes SELFIES, which have no place for a gap; use prefix")
    ids = {token: k for k, token in enumerate(vocabulary.tokens)}
    if settings.template:
        ids[OPEN] = FREE
    try:
        tokens = vocabulary.representation.tokenize(start)
        if unknown := [token for token in tokens if token not in ids]:
            raise InputError(f"unknown token {unknown[0]}; the model has none like it")
    except InputError as error:
        whole = "a model of SELFIES needs a whole molecule: " * selfies
        raise InputError(f"{option}: {whole}{error}") from None
    return _row(option, [BOS], [ids[token] for token in tokens], length, room=length - 2)


def given_text(settings: DemandSettings, tokeniser: Tokeniser, length: int) -> Tensor | None:
    """The same for a row of text."""
    start, option = _start(settings)
    if start is None:
        return None
    tokens: list[int] = []
    for number, piece in enumerate(start.split(OPEN) if settings.template else [start]):
        try:
            encoded = tokeniser.encode(piece).tolist() if piece else []
            if tokeniser.unknown in encoded:
                raise InputError("unknown symbol")
        except InputError as error:
            raise InputError(f"{option}: {error}") from None
        tokens += [*([FREE] if number else []), *encoded]
    lead = [] if tokeniser.start is None else [tokeniser.start]
    after = 1 if tokeniser.lines or tokeniser.margins else 0  # the end symbol
    return _row(option, lead, tokens, length, room=length - len(lead) - after)


def given_places(given: Tensor) -> int:
    """How many places of a row reach to its last given symbol."""
    return int((given != FREE).nonzero().max()) + 1


def describe_kept(settings: DemandSettings, smiles: Sequence[str]) -> str:
    """How many of the molecules have the prefix as a substructure, if it is a molecule by itself."""
    from rdkit import Chem, rdBase

    if settings.prefix is None or settings.raw or not smiles:
        return ""
    with rdBase.BlockLogs():
        scaffold = Chem.MolFromSmiles(settings.prefix)
    if scaffold is None:
        return " (the prefix is no molecule by itself, so that no substructure is looked for)"
    number = sum(Chem.MolFromSmiles(text).HasSubstructMatch(scaffold) for text in smiles)
    return f" ({number / len(smiles):.1%} of them with the substructure {settings.prefix})"


def _start(settings: DemandSettings) -> tuple[str | None, str]:
    """The start of each row, and the name of the option that gives it."""
    return (settings.prefix, "prefix") if settings.template is None else (settings.template, "template")


def _row(option: str, lead: list[int], tokens: list[int], length: int, room: int) -> Tensor:
    if len(tokens) > room:
        raise InputError(f"{option}: too long ({len(tokens)} tokens, limit {room})")
    if all(token == FREE for token in tokens):
        raise InputError(f"{option}: no token is given, only {OPEN}")
    row = torch.full((length,), FREE)
    row[: len(lead) + len(tokens)] = torch.tensor([*lead, *tokens])
    return row
