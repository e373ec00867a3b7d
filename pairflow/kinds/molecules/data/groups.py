"""Writes molecules in groups of atoms: ring systems, multiple bonds with their atoms, and single atoms.

A molecule is cut at its single bonds outside rings. The groups between the cuts are its tokens, each a SMILES
with a `*` at every cut, such as `*c1ccc(*)cc1`. So a ring system with its substitution pattern is one token,
and no model can make a new one, except by a hydrogen atom where a place is left free.

SAFE (Noutahi et al. 2024, doi 10.1039/d4dd00019f) and Group SELFIES (Cheng et al. 2023,
doi 10.1039/d3dd00012e) write molecules in groups, too, but cut them in other ways.

The groups of a molecule are a tree, and its tokens follow a walk through it (in preorder). The first token
begins with an atom. Each other token begins with a `*`, its bond to the group that it hangs on; its other `*`
are taken by the tokens that come next, in turn, each with all that hangs on it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

from rdkit import Chem, rdBase

from pairflow.errors import InputError

if TYPE_CHECKING:
    from pairflow.flow.grammar import Grammar

CUT = "*"
MIXTURE = "a salt or a mixture, which groups cannot write"
LONGEST_GROUP = 200  # characters of a group
_GROUP = re.compile(r"[^\s<>.]+")
_LABEL = re.compile(r"\[(\d+)\*\]")
# A bracket atom, the number of a ring, or another character.
_PART = re.compile(r"\[[^\[\]]*\]|%\d\d|%\(\d+\)|.")
_RING = re.compile(r"%?\(?\d+\)?")
_HYDROGEN = "[H]"
_TURNED = ("/", "\\")
_TURN = str.maketrans("/\\", "\\/")


def tokenize_groups(smiles: str) -> list[str]:
    """Cut a molecule, given as SMILES, into groups, and return these as tokens. Raises InputError if the
    molecule has several parts or dummy atoms, if RDKit cannot read it, or if its groups stand for another
    molecule."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is not None and "." in smiles:
        raise InputError(MIXTURE)
    if molecule is None or CUT in smiles:
        raise InputError("groups cannot write it")
    groups, ends = _cut(molecule)
    tokens, left = list[str](), [0]  # no cut has number 0: the first group hangs on none
    while left:
        end = left.pop()
        group, atom = ends.get(end, (0, None))
        token, cuts = _write(groups[group], atom)
        tokens.append(token)
        left += [cut ^ 1 for cut in reversed(cuts) if cut != end]
    if join_groups(tokens) != Chem.MolToSmiles(molecule):
        raise InputError("its groups stand for another molecule")
    if not all(map(is_group, tokens)):
        raise InputError(f"has a group that RDKit cannot read, or of over {LONGEST_GROUP} characters")
    return tokens


@lru_cache(maxsize=2**16)
def is_group(token: str) -> bool:
    """Return whether a token is a group: one fragment that RDKit can read, of at most LONGEST_GROUP
    characters."""
    if len(token) > LONGEST_GROUP or not _GROUP.fullmatch(token):
        return False
    with rdBase.BlockLogs():
        return Chem.MolFromSmiles(token) is not None


def _cut(molecule: Chem.Mol) -> tuple[tuple[Chem.Mol, ...], dict[int, tuple[int, int]]]:
    """Return the groups of a molecule, and a dict from the number of each end of a cut to its place:
    (index of the group, index of the atom in it). The ends of cut k = 1, 2, ... are number 2k and 2k + 1.
    The atom is a dummy atom, and its isotope is the number of the end."""
    cuts = [bond.GetIdx() for bond in molecule.GetBonds() if _is_cut(bond)]
    if not cuts:
        return (molecule,), {}
    labels = [(2 * number, 2 * number + 1) for number in range(1, len(cuts) + 1)]
    pieces = Chem.FragmentOnBonds(molecule, cuts, dummyLabels=labels)
    groups = Chem.GetMolFrags(pieces, asMols=True, sanitizeFrags=False)
    ends = {
        atom.GetIsotope(): (group, atom.GetIdx())
        for group, piece in enumerate(groups)
        for atom in piece.GetAtoms()
        if not atom.GetAtomicNum()
    }
    return groups, ends


def _is_cut(bond: Chem.Bond) -> bool:
    """Return whether a bond is cut: a single one outside rings, but not one between charges, as in a nitro
    group."""
    atoms = bond.GetBeginAtom(), bond.GetEndAtom()
    single = bond.GetBondType() == Chem.BondType.SINGLE and not bond.IsInRing()
    heavy = all(atom.GetAtomicNum() > 1 for atom in atoms)
    return single and heavy and not all(atom.GetFormalCharge() for atom in atoms)


def _write(group: Chem.Mol, first: int | None) -> tuple[str, list[int]]:
    """Write a group as SMILES that begin with its atom number `first`, a dummy atom, or (None) with any real
    atom. Returns the token, and the numbers of its ends of cuts (see `_cut`) in the order of its `*`."""
    plain = Chem.RWMol(group)
    for atom in plain.GetAtoms():
        if not atom.GetAtomicNum():
            atom.SetIsotope(int(atom.GetIdx() == first))
    ranks = Chem.CanonicalRankAtoms(plain, includeChirality=False)
    real = [bool(atom.GetAtomicNum()) for atom in group.GetAtoms()]
    order = sorted(range(len(real)), key=lambda atom: (atom != first, not real[atom], ranks[atom]))
    text = Chem.MolToSmiles(Chem.RenumberAtoms(group, order), canonical=False, rootedAtAtom=0)
    return _LABEL.sub(CUT, text), [*map(int, _LABEL.findall(text))]


def _number_rings(smiles: str, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the parts of SMILES (atoms, bonds, ring closures, ...), with the next of `numbers` in place of
    the number of each ring."""
    opened = dict[str, int]()
    for part in _PART.findall(smiles):
        if _RING.fullmatch(part):
            number = opened.pop(part) if part in opened else opened.setdefault(part, next(numbers))
            yield str(number) if number < 10 else f"%({number})"
        else:
            yield part


def join_groups(tokens: Sequence[str]) -> str:
    """Put groups together to canonical SMILES. A place (an open `*`) that no token takes gets a hydrogen
    atom, and tokens for which there is no place are left out. So that few tokens are left out, a token that
    would take the last place waits for the next token with further places.

    If a symbol is special (`<mask>`), or RDKit rejects the molecule, the result is not valid SMILES.
    """
    if not tokens or any(map(_is_special, tokens)):
        return "".join(tokens)
    text = _grow(iter(_keep_open(tokens)), count(1))
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(text)
    return text if molecule is None else Chem.MolToSmiles(molecule)


def _keep_open(tokens: Sequence[str]) -> list[str]:
    """Return the tokens in an order in which the molecule can keep growing: a token that would close the
    last place (open `*`) comes after the next token that adds places. The tokens of a whole molecule keep
    their order. Tokens for which there is no place are left out."""
    first, *others = tokens
    ordered, places = [first], first.count(CUT) - first.startswith(CUT)
    waiting = [token for token in others if token.startswith(CUT)]
    while waiting and places:
        chosen = 0
        if places == 1 and waiting[0].count(CUT) == 1:
            chosen = next((n for n, token in enumerate(waiting) if token.count(CUT) > 1), 0)
        token = waiting.pop(chosen)
        places += token.count(CUT) - 2
        ordered.append(token)
    return ordered


def _is_special(token: str) -> bool:
    return "<" in token


def grammar(tokens: Sequence[str], length: int, ends: tuple[str, str, str]) -> "Grammar":
    """Return the grammar of molecules written in groups. `tokens` are all symbols, `length` is N, the tokens
    per row, and `ends` are the symbols that begin, end and fill a row.

    After the beginning comes a group that begins with an atom, then groups that begin with a `*`. The state
    of the grammar is the number of open places: a group takes one and adds its other `*`, and no place is
    open at the end.
    """
    import torch

    from pairflow.flow.grammar import Grammar

    begin, end, filler = ends
    # A class is a special symbol, or how many places a group adds, and whether it begins with an atom.
    classes: dict[object, int] = {}
    numbers = []
    for token in tokens:
        first = not token.startswith(CUT)
        name = token if _is_special(token) else (token.count(CUT) - (0 if first else 2), first)
        numbers.append(classes.setdefault(name, len(classes)))
    # States: 0 is before the beginning, 1 after it, 2 after the end; 3 + n has n open places.
    following = torch.full((4 + length, len(classes)), -1)
    for (state, symbol), after in {(0, begin): 1, (3, end): 2, (2, filler): 2}.items():
        following[state, classes[symbol]] = after
    for group, number in classes.items():
        if isinstance(group, tuple):
            added, first = group
            for places in [0] if first else range(1, length + 1):
                if places + added <= length:
                    following[1 if first else 3 + places, number] = 3 + places + added
    return Grammar(length, torch.tensor(numbers), following, torch.arange(len(following)) == 2)


def fill_groups(start: str, parts: Sequence[str | list[str]]) -> str:
    """Join the tokens of a scaffold, with the sampled groups in its gaps, into SMILES. `start` is the
    scaffold as SMILES with a `*` for each gap. `parts` has its tokens in their order, and a list of
    sampled tokens for each gap. Where something has to follow the sampled groups (after the first part of
    a molecule, or after a linker between two fragments), their last free place is kept for it."""
    linked = is_link(start)
    tokens = []
    for position, part in enumerate(parts):
        if isinstance(part, list) and any(map(_is_special, part)):
            part = "".join(part)  # so that the whole is no molecule
        elif isinstance(part, list):
            text = _grow(iter(part), count(1), CUT if position else None)
            if linked or not position:
                text = CUT.join(text.rsplit(_HYDROGEN, 1))
            part = CUT + text if position else text
        tokens.append(part)
    return join_groups(tokens)


def is_link(start: str) -> bool:
    """Return whether a start is two fragments, with a gap for the linker between them."""
    return not start.startswith(CUT) and not start.endswith(CUT)


def spell_groups(start: str) -> Iterator[str]:
    """Yield two spellings of `start`, a scaffold as SMILES with `*` for gaps: as it is, and beginning at
    its open end, so that what grows there is the first part of the molecule. A link between two fragments
    has only the first spelling."""
    yield start
    if not is_link(start):
        molecule = Chem.MolFromSmiles(start)
        yield Chem.MolToSmiles(molecule, rootedAtAtom=molecule.GetNumAtoms() - 1)


def _grow(tokens: Iterator[str], rings: Iterator[int], before: str | None = None) -> str:
    """Return the SMILES of the next of `tokens` with all that hangs on it; places that are left open when the
    tokens end get [H]. `before` is the character in front of that token, None at the start of a molecule (see
    `_next`). Each ring gets the next number of `rings`."""
    text = ""
    open_parts = [_number_rings(_next(tokens, before), rings)]  # a stack, because molecules may be very long
    while open_parts:
        part = next(open_parts[-1], None)
        if part is None:
            open_parts.pop()
        elif part == CUT:
            open_parts.append(_number_rings(_next(tokens, text[-1:]), rings))
        else:
            text += part
    return text


def _next(tokens: Iterator[str], before: str | None) -> str:
    """Return the next of `tokens` that can follow the character `before`, or [H] if there is none.

    At the start of a molecule (`before` is None) any token can follow, and a `*` at its beginning becomes
    [H]. Later only a token that begins with `*` can, and the `*` is removed: it is the bond to what is
    before.
    """
    token = next((token for token in tokens if before is None or token.startswith(CUT)), CUT + _HYDROGEN)
    token = token.removeprefix(CUT) if before else token.replace(CUT, _HYDROGEN, token.startswith(CUT))
    if before in _TURNED and token[0] in _TURNED:  # both groups say on which side of a double bond they are
        token = (token if token[0] == before else token.translate(_TURN))[1:]
    return token
