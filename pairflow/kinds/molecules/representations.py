"""How a molecule is written in tokens: as SMILES, or as SELFIES, of which nearly every string is a molecule.

SELFIES (Krenn et al. 2020, doi 10.1088/2632-2153/aba947) are written by the library `selfies`, with its
default rules of valence.
"""

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from rdkit import Chem, rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import Notation

# Bracket atoms, two-letter elements and two-digit ring closures are one token, else each character is.
_SMILES = re.compile(r"\[[^\[\]]+\]|Br|Cl|%\d\d|->|<-|[BCNOSPFIbcnosp*]|[-=#$:/\\.()]|\d")
_SELFIES = re.compile(r"\[[^\[\]]+\]|\.")
_RING, _FIRST_RING = re.compile(r"%?(\d+)"), 50


class Representation(NamedTuple):
    """The `name` of the strings, the `pattern` of one token, and the functions between SMILES and tokens.

    `tokenize` raises InputError for a molecule that cannot be written; `join` makes a SMILES string of any
    tokens, valid or not. `graft` writes a group that is bonded to the atom before it, and as a link also to
    the atom behind it.
    """

    name: str
    pattern: re.Pattern[str]
    tokenize: Callable[[str], list[str]]
    join: Callable[[Sequence[str]], str]
    graft: Callable[[Sequence[str], bool], str]


def tokenize(smiles: str) -> list[str]:
    """The tokens of a SMILES string: atoms, bonds, branches and ring closures. Joined, they are the string.
    InputError for a character that belongs to no token."""
    tokens = _SMILES.findall(smiles)
    if "".join(tokens) != smiles:
        raise InputError(f"not a SMILES string: {smiles!r} holds characters that belong to no token")
    return tokens


def tokenize_selfies(smiles: str) -> list[str]:
    """The SELFIES symbols of a molecule; InputError if SELFIES cannot write it, or if they decode to another
    molecule."""
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
    """The canonical SMILES of SELFIES symbols, so that a molecule has only one spelling.

    If a symbol is special, or RDKit rejects the molecule, the joined symbols are returned, which are not
    valid SMILES.
    """
    import selfies

    text = "".join(symbols)
    if not all(map(_SELFIES.fullmatch, symbols)):
        return text
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(selfies.decoder(text))
    return text if molecule is None else Chem.MolToSmiles(molecule)


def graft_smiles(tokens: Sequence[str], link: bool) -> str:
    """The tokens as they are; hydrogen where there are none and nothing is linked."""
    return "".join(tokens) or ("" if link else "[H]")


def graft_selfies(symbols: Sequence[str], link: bool) -> str:
    """The SMILES of a group by its SELFIES symbols; it ends in `.` where it is to be a link and has no end.

    They are read between iodine atoms, which have one bond. The numbers of rings are those that no scaffold
    has open.
    """
    import selfies

    if not all(map(_SELFIES.fullmatch, symbols)):
        return "".join(symbols)
    group = selfies.decoder("".join(["[I]", *symbols, *["[I]"] * link])).removeprefix("I")
    if link:
        group = group.removesuffix("I") if group.endswith("I") else f"{group}."
    rings = ((token, _RING.fullmatch(token)) for token in tokenize(group))
    return graft_smiles([f"%{_FIRST_RING + int(ring[1])}" if ring else token for token, ring in rings], link)


REPRESENTATIONS = {
    "smiles": Representation("SMILES", _SMILES, tokenize, "".join, graft_smiles),
    "selfies": Representation("SELFIES", _SELFIES, tokenize_selfies, join_selfies, graft_selfies),
}


def get_representation(kind: Notation) -> Representation:
    """One of REPRESENTATIONS; InputError if it needs the library `selfies`, which is not installed."""
    if kind == "selfies" and find_spec("selfies") is None:
        remedy = 'pip install "pairflow[selfies]", or --representation smiles for a new experiment'
        raise InputError(f"SELFIES need the package selfies: {remedy}")
    return REPRESENTATIONS[kind]
