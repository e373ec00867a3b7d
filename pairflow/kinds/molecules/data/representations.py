"""Writes molecules in tokens of SMILES, SELFIES or groups. Nearly all rows of SELFIES or groups are valid.

SELFIES (Krenn et al. 2020, doi 10.1088/2632-2153/aba947) are written by the library `selfies`, with its
default rules of valence, and groups by `groups.py`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rdkit import Chem, rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.groups import (
    CUT,
    fill_groups,
    grammar,
    is_group,
    is_link,
    join_groups,
    spell_groups,
    tokenize_groups,
)
from pairflow.kinds.molecules.settings import Notation

if TYPE_CHECKING:
    from pairflow.flow.grammar import Grammar

# A token is a bracket atom, a two-letter element, a two-digit ring closure, or else a single character.
_SMILES = re.compile(r"\[[^\[\]]+\]|Br|Cl|%\d\d|->|<-|[BCNOSPFIbcnosp*]|[-=#$:/\\.()]|\d")
_SELFIES = re.compile(r"\[[^\[\]]+\]|\.")
_RING, _FIRST_RING = re.compile(r"%?(\d+)"), 50


Part = str | list[str]


class Representation(NamedTuple):
    """A notation of molecules, and its functions between SMILES and tokens.

    Attributes:
        name: the name of the notation in messages.
        accepts: whether a text is a token; a function.
        tokenize: SMILES -> tokens. Raises InputError for a molecule that the notation cannot write.
        join: tokens -> SMILES, which are invalid if the tokens are no molecule.
        fill: (start, parts) -> SMILES of a scaffold with its gaps filled. `start` is the scaffold as SMILES
            with a `*` for each gap. `parts` has its tokens in their order, with a list of tokens for a gap.
        spell: start -> the spellings of this start that differ as tokens.
        grammar: returns the grammar of whole molecules, see `groups.grammar`; None if there is none.
    """

    name: str
    accepts: Callable[[str], object]
    tokenize: Callable[[str], list[str]]
    join: Callable[[Sequence[str]], str]
    fill: Callable[[str, Sequence[Part]], str]
    spell: Callable[[str], Iterable[str]] = lambda start: [start]
    grammar: "Callable[[Sequence[str], int, tuple[str, str, str]], Grammar] | None" = None


def tokenize(smiles: str) -> list[str]:
    """Split SMILES into tokens: atoms, bonds, branches and ring closures. The tokens in their order make up
    the whole string. Raises InputError for a character that belongs to no token."""
    tokens = _SMILES.findall(smiles)
    if "".join(tokens) != smiles:
        raise InputError(f"not a SMILES string: {smiles!r} holds characters that belong to no token")
    return tokens


def tokenize_selfies(smiles: str) -> list[str]:
    """Translate SMILES into SELFIES symbols. Raises InputError if SELFIES cannot write the molecule, or if
    the symbols decode to another molecule."""
    import selfies

    try:
        text = selfies.encoder(smiles)
    except selfies.EncoderError:
        raise InputError("SELFIES cannot write it") from None
    with rdBase.BlockLogs():
        given, back = map(Chem.MolFromSmiles, (smiles, selfies.decoder(text)))
    if not given or not back or Chem.MolToSmiles(given) != Chem.MolToSmiles(back):
        raise InputError("its SELFIES stand for another molecule")
    return list(selfies.split_selfies(text))


def join_selfies(symbols: Sequence[str]) -> str:
    """Translate SELFIES symbols into canonical SMILES, so that a molecule has only one spelling.

    If a symbol is special (`<mask>`), or RDKit rejects the molecule, the symbols are returned as one string,
    which is not valid SMILES.
    """
    import selfies

    text = "".join(symbols)
    if not all(map(_SELFIES.fullmatch, symbols)):
        return text
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(selfies.decoder(text))
    return text if molecule is None else Chem.MolToSmiles(molecule)


def graft_smiles(tokens: Sequence[str], link: bool) -> str:
    """Return the SMILES for a gap of a scaffold that is filled with `tokens`. Without tokens the gap gets a
    hydrogen atom or, if it links two fragments (`link`), a direct bond."""
    return "".join(tokens) or ("" if link else "[H]")


def graft_selfies(symbols: Sequence[str], link: bool) -> str:
    """Return the SMILES for a gap of a scaffold that is filled with SELFIES symbols; they can follow an atom.

    The symbols are decoded behind an iodine atom, which has one bond and stands for the scaffold, and for a
    gap that links two fragments (`link`) also in front of another one. If a link does not reach the second
    iodine, its SMILES end in `.`, and so connect nothing. Numbers of rings start above _FIRST_RING, because a
    scaffold has rings with smaller numbers open.
    """
    import selfies

    if not all(map(_SELFIES.fullmatch, symbols)):
        return "".join(symbols)
    group = selfies.decoder("".join(["[I]", *symbols, *["[I]"] * link])).removeprefix("I")
    if link:
        group = group.removesuffix("I") if group.endswith("I") else f"{group}."
    rings = ((token, _RING.fullmatch(token)) for token in tokenize(group))
    return graft_smiles([f"%{_FIRST_RING + int(ring[1])}" if ring else token for token, ring in rings], link)


def _fill_text(graft: Callable[[Sequence[str], bool], str], start: str, parts: Sequence[Part]) -> str:
    """Return a scaffold with its gaps filled, as SMILES. `start` is the scaffold as SMILES with a `*` for
    each gap, and `parts` has its tokens, with a list of sampled tokens for a gap. `graft` turns these
    lists into SMILES."""
    groups = (part for part in parts if isinstance(part, list))
    first, *pieces = start.split(CUT)
    link = is_link(start)
    return first + "".join(graft(group, link) + piece for group, piece in zip(groups, pieces, strict=True))


REPRESENTATIONS = {
    "smiles": Representation(
        "SMILES", _SMILES.fullmatch, tokenize, "".join, partial(_fill_text, graft_smiles)
    ),
    "selfies": Representation(
        "SELFIES", _SELFIES.fullmatch, tokenize_selfies, join_selfies, partial(_fill_text, graft_selfies)
    ),
    "groups": Representation(
        "groups", is_group, tokenize_groups, join_groups, fill_groups, spell_groups, grammar
    ),
}


def get_representation(kind: Notation) -> Representation:
    """Return the functions of the notation `kind` (SMILES, SELFIES or groups). Raises InputError for
    SELFIES if the package `selfies` is not installed."""
    if kind == "selfies" and find_spec("selfies") is None:
        remedy = "pip install selfies, or --representation smiles for a new experiment"
        raise InputError(f"SELFIES need the package selfies: {remedy}")
    return REPRESENTATIONS[kind]
