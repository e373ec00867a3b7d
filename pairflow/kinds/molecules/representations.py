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


class Representation(NamedTuple):
    """The `name` of the strings, the `pattern` of one token, and the functions between SMILES and tokens.

    `tokenize` raises InputError for a molecule that cannot be written; `join` makes a SMILES string of any
    tokens, valid or not.
    """

    name: str
    pattern: re.Pattern[str]
    tokenize: Callable[[str], list[str]]
    join: Callable[[Sequence[str]], str]


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


REPRESENTATIONS = {
    "smiles": Representation("SMILES", _SMILES, tokenize, "".join),
    "selfies": Representation("SELFIES", _SELFIES, tokenize_selfies, join_selfies),
}


def get_representation(kind: Notation) -> Representation:
    """One of REPRESENTATIONS; InputError if it needs the library `selfies`, which is not installed."""
    if kind == "selfies" and find_spec("selfies") is None:
        remedy = 'pip install "pairflow[selfies]", or --representation smiles for a new experiment'
        raise InputError(f"SELFIES need the package selfies: {remedy}")
    return REPRESENTATIONS[kind]
