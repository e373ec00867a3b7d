"""Finds what a model has in place of a group that it does not know: other charges, or the nearest group."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import combinations
from typing import Any

from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.groups import CUT, is_group, join_groups, tokenize_groups

_MOST_ATOMS = 8  # of a group whose charges are changed, so that there are few ways
_MOST_CHANGES = 2  # of charges in a group at once
_CHARGE = re.compile(r"[+-]\d*\]")
# The parts of SMILES that are atoms; their order is that of the atoms of the molecule.
_ATOM = re.compile(r"\[[^\[\]]*\]|Br|Cl|[BCNOSPFIbcnosp*]")
_BRACKET = re.compile(r"\[(\d*)([A-Za-z][a-z]?)(@*)(?:H\d*)?(?:[+-]\d*)?\]")


class KnownGroups:
    """Knows the groups of a model, its vocabulary `tokens`. Molecules with other groups are corrected, or
    explained to the user."""

    def __init__(self, tokens: Iterable[str]):
        self.tokens = frozenset(tokens)
        self._advice: dict[str, str] = {}  # what `explain` says, by unknown group

    def recharge(self, tokens: Sequence[str]) -> list[str] | None:
        """Change the charges in `tokens`, the groups of a molecule, so that the model knows all groups.
        Returns the new tokens; None if that is not possible."""
        left: list[str] | None = [*tokens]
        while left and self._unknown(left):
            left = next(self._with_fewer_unknown(left), None)
        return left

    def explain(self, tokens: Sequence[str]) -> str:
        """Say what the model has in place of the first unknown group in `tokens`, the groups of a
        molecule: the group with another charge or, if it does not know that, the nearest group. Empty if
        it has neither."""
        first = self._unknown(tokens)[0]
        if first not in self._advice:
            if other := next(self._with_fewer_unknown(tokens), None):
                known = next(token for token in Counter(other) - Counter(tokens) if token in self.tokens)
                advice = f"the model has it {'charged' if _CHARGE.search(known) else 'neutral'}, {known}"
            else:
                near = self._nearest(first)
                advice = f"the nearest group that the model has is {near}" if near else ""
            self._advice[first] = advice
        return self._advice[first]

    def _unknown(self, tokens: Sequence[str]) -> list[str]:
        return [token for token in tokens if token not in self.tokens]

    def _with_fewer_unknown(self, tokens: Sequence[str]) -> Iterator[list[str]]:
        """Yield the molecule with other charges in its first unknown group, as tokens, for each change that
        leaves fewer unknown groups."""
        unknown = self._unknown(tokens)
        place = tokens.index(unknown[0])
        for other in _other_charges(unknown[0]):
            # The cuts of a group may come in another order with other charges, so the whole is cut again.
            whole = join_groups([*tokens[:place], other, *tokens[place + 1 :]])
            with suppress(InputError):
                written = tokenize_groups(whole)
                if len(self._unknown(written)) < len(unknown):
                    yield written

    def _nearest(self, group: str) -> str:
        """Return the known group with the Morgan fingerprint nearest to the one of `group`, among the
        groups with the same number of cuts or, if there are none, among all. Returns an empty text if
        `group` has no fingerprint, or the model no groups."""
        cuts, wanted = group.count(CUT), _fingerprint(group)
        prints = {token: known for token, known in self._prints.items() if token.count(CUT) == cuts}
        prints = prints or self._prints
        if wanted is None or not prints:
            return ""
        likenesses = DataStructs.BulkTanimotoSimilarity(wanted, [*prints.values()])
        return min(zip(prints, likenesses, strict=True), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))[
            0
        ]

    @cached_property
    def _prints(self) -> dict[str, Any]:
        return {token: _fingerprint(token) for token in sorted(self.tokens) if is_group(token)}


def _fingerprint(group: str) -> Any:
    """Return the Morgan fingerprint (counts) of a group; None if RDKit cannot read the group."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(group)
    return None if molecule is None else GetMorganGenerator(radius=2).GetSparseCountFingerprint(molecule)


def _other_charges(group: str) -> Iterator[str]:
    """Yield the SMILES of a group with a proton more or less at one atom, then at two. The order of the atoms
    stays."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(group)
    atoms = [*_ATOM.finditer(group)]
    if molecule is None or molecule.GetNumAtoms() != len(atoms):
        return
    changed = {
        match.span(): text
        for match, atom in zip(atoms, molecule.GetAtoms(), strict=True)
        if (text := _other_charge(match[0], atom))
    }
    spans = [*changed][:_MOST_ATOMS]
    for number in range(1, _MOST_CHANGES + 1):
        for chosen in combinations(spans, number):
            text = group
            for first, last in reversed(chosen):
                text = text[:first] + changed[first, last] + text[last:]
            yield text


def _other_charge(text: str, atom: Chem.Atom) -> str:
    """Return an atom of SMILES, such as `O`, with a proton more or less, such as `[OH0-]`. Nitrogen becomes
    neutral or positive, oxygen and sulphur neutral or negative. Returns an empty text for any other atom, and
    if there is no such form."""
    number, charge, hydrogens = atom.GetAtomicNum(), atom.GetFormalCharge(), atom.GetTotalNumHs()
    ways = {(7, 0): 1, (7, 1): -1, (8, 0): -1, (8, -1): 1, (16, 0): -1, (16, -1): 1}  # protons to add
    protons = ways.get((number, charge), 0)
    if not protons or hydrogens + protons < 0:
        return ""
    match = _BRACKET.fullmatch(text if text.startswith("[") else f"[{text}]")
    if match is None:
        return ""
    isotope, symbol, chirality = match.groups()
    sign = {1: "+", 0: "", -1: "-"}[charge + protons]
    return f"[{isotope}{symbol}{chirality}H{hydrogens + protons}{sign}]"
