"""Makes samples keep a scaffold: its tokens are fixed, and the model fills the gaps where it grows.

A *start* is the SMILES of a scaffold with `*` for each gap. A gap at the end of a start is open: the model
decides where the molecule ends. Every other gap has a fixed number of tokens. A start of two fragments, with
a gap for the linker between them, ends in an atom, so that it has no open end.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, cycle, groupby
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rdkit import Chem, rdBase
from torch import Tensor

from pairflow.errors import InputError
from pairflow.flow.given import OPEN, given_row
from pairflow.flow.samplers import FREE
from pairflow.kinds.molecules.data.groups import is_link
from pairflow.kinds.molecules.data.library import Row, unit_of
from pairflow.kinds.molecules.data.prepare import BOS, EOS, PAD, Vocabulary
from pairflow.kinds.molecules.data.reading import read_molecule
from pairflow.kinds.molecules.data.representations import Part
from pairflow.kinds.molecules.data.survey import read_found
from pairflow.kinds.molecules.on_demand.unknown_groups import KnownGroups

ROWS = 1024  # least number of rows if lengths of gaps are drawn; after the last the first comes again
_ISOTOPE = 900  # of the carbon atoms that stand for the tokens of the first gap; each gap has its own
_RANDOM = 300  # number of random SMILES that are tried if no other ends where the molecule may grow


class Scaffold(NamedTuple):
    """A scaffold, with its text and name in the user's file. `where` is its place in the file, for
    messages. `starts` are its possible starts, SMILES with `*` for each gap. `query` finds it in
    molecules, which must have at least `atoms` atoms."""

    text: str
    name: str
    where: str
    starts: list[str]
    query: Chem.Mol
    atoms: int


class Growth:
    """Makes rows with the symbols of scaffolds, and turns samples of these rows into molecules.

    `given` (R, N) has R rows of N symbols, FREE (-1) in gaps; sample number i has row i mod R. Scaffolds take
    turns, and so do the starts of a scaffold, its SMILES with `*` for gaps. For a start with gaps before its
    end, the molecule's number of tokens is drawn from the list that `lengths()` returns. The tokens that the
    scaffold does not need are divided at random among the gaps and the end: all divisions with at least one
    token in every part are equally likely. If nothing can grow at the end, the gaps get all of these tokens,
    so that all lengths of the link between two fragments are equally likely.
    """

    def __init__(
        self,
        scaffolds: Sequence[Scaffold],
        vocabulary: Vocabulary,
        length: int,
        lengths: Callable[[], Sequence[int]],
        generator: np.random.Generator,
    ):
        self.vocabulary = vocabulary
        written = [_shortest(scaffold, vocabulary, length) for scaffold in scaffolds]
        gaps = any(_count_gaps(*start) for starts in written for start in starts.items())
        turns = max(len(scaffold.starts) for scaffold in scaffolds)
        turns = max(turns, ceil(ROWS / len(scaffolds))) if gaps else turns
        totals = lengths() if gaps else ()
        pairs = [
            (scaffold, _rows(scaffold.where, starts, vocabulary, totals, generator))
            for scaffold, starts in zip(scaffolds, written, strict=True)
        ]
        self._rows = [(scaffold, *next(rows)) for _ in range(turns) for scaffold, rows in pairs]
        self.given = torch.stack([torch.where(row < 0, FREE, row) for _, _, row in self._rows])
        self.begin()

    def begin(self) -> None:
        """Start again: the next sample to assemble is of the first row."""
        self._number = -1

    @property
    def scaffold(self) -> Scaffold:
        """The scaffold of the sample that was assembled last."""
        return self._rows[self._number % len(self._rows)][0]

    def assemble(self, tokens: Sequence[int]) -> str:
        """Return the SMILES of the next sample, whose row is `tokens` (N,): its scaffold with the gaps
        filled. Samples must come in the order in which they were drawn."""
        self._number += 1
        _, start, row = self._rows[self._number % len(self._rows)]
        parts: list[Part] = []
        for gap, pairs in groupby(zip(row.tolist(), tokens, strict=True), lambda pair: min(pair[0], 0)):
            symbols = self.vocabulary.symbols(token for _, token in pairs)
            parts += [symbols] if gap else symbols
        return self.vocabulary.representation.fill(start, parts)

    def is_kept(self, molecule: Chem.Mol) -> bool:
        """Return whether `molecule`, the sample that was assembled last, has its scaffold, grown only where
        it may."""
        scaffold = self.scaffold
        return molecule.GetNumAtoms() >= scaffold.atoms and molecule.HasSubstructMatch(scaffold.query)


def _shortest(scaffold: Scaffold, vocabulary: Vocabulary, length: int) -> dict[str, Tensor]:
    """Map each start (SMILES with `*` for gaps) of a scaffold that the model can write to its row (N,) in
    which each gap has one token. Raises InputError if the model can write none."""
    rows, reason = dict[str, Tensor](), None
    for start in chain.from_iterable(map(vocabulary.representation.spell, scaffold.starts)):
        try:
            rows[start] = _write(scaffold.where, start, (1,) * start.count(OPEN), vocabulary, length)
        except InputError as error:
            reason = reason or error
    if reason and not rows:
        raise reason
    return rows


def _count_gaps(start: str, row: Tensor) -> int:
    """Return the number of gaps in a start except an open end. `row` (N,) is the start as `_write` returns
    it."""
    return start.count(OPEN) - int(row[-1] < 0)


def _rows(
    where: str,
    starts: dict[str, Tensor],
    vocabulary: Vocabulary,
    totals: Sequence[int],
    generator: np.random.Generator,
) -> Iterator[tuple[str, Tensor]]:
    """Yield the starts of a scaffold (SMILES with `*` for gaps) in turn, without end, each with its row
    (N,), which has negative numbers in gaps (see `_write`). `starts` maps each to its shortest row. The
    number of tokens of a molecule with gaps is drawn from `totals`. `where` begins error messages."""
    write = cache(lambda start, gaps: _write(where, start, gaps, vocabulary, len(row)))
    for start, row in cycle(starts.items()):
        if gaps := _count_gaps(start, row):
            full = int(row[-1] >= 0 and not is_link(start))  # only gaps grow, so they take all tokens
            left = max(gaps + 1, int(generator.choice(totals)) - int((row > PAD).sum()))
            cuts = np.sort(generator.choice(left - 1, gaps - full, replace=False)) + 1
            drawn = np.diff([0, *cuts, *[left] * full]).tolist()
            if row[-1] < 0:
                drawn.insert(FREE - 1 - int(row[-1]), 1)
            with suppress(InputError):  # if these gaps do not fit, they are the shortest
                row = write(start, tuple(drawn))
        yield start, row


def _write(where: str, start: str, gaps: tuple[int, ...], vocabulary: Vocabulary, length: int) -> Tensor:
    """Return the row (N,) of `start` (SMILES with `*` for gaps), N = `length`, in which gap number k has
    gaps[k] positions. These positions have the negative number FREE - 1 - k instead of a token. If the
    start has an open end, all positions after it have the same number as this last gap. `where` begins
    error messages."""
    first, *pieces = start.split(OPEN)
    fillers = [f"[{_ISOTOPE + gap}CH2]" for gap in range(len(gaps))]
    filled = first + "".join(
        gap * filler + piece for gap, filler, piece in zip(gaps, fillers, pieces, strict=True)
    )
    spelt = ("{}", "{}*", "*{}", "*{}*")  # by itself, or as a group
    free = {form.format(filler): FREE - 1 - gap for gap, filler in enumerate(fillers) for form in spelt}
    tokens = given_tokens(where, filled, vocabulary, free)
    row = given_row(where, [BOS], tokens, length, room=length - 2)
    row[len(tokens) + 1 :] = tokens[-1] if tokens[-1] < 0 else PAD
    if tokens[-1] >= 0:
        row[len(tokens) + 1] = EOS
    return row


def given_tokens(where: str, text: str, vocabulary: Vocabulary, more: dict[str, int]) -> list[int]:
    """Return the ids of the tokens of the SMILES `text`. `more` maps tokens to ids that are used instead of
    the vocabulary's. Raises InputError, which begins with `where`, for a token that has no id."""
    ids = {token: k for k, token in enumerate(vocabulary.tokens)} | more
    try:
        tokens = vocabulary.representation.tokenize(text)
        if unknown := [token for token in tokens if token not in ids]:
            advice = KnownGroups(ids).explain(tokens) if vocabulary.kind == "groups" else ""
            text = f"unknown token {unknown[0]}; it is not in the model's vocabulary"
            raise InputError(f"{text}; {advice}" if advice else text)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return [ids[token] for token in tokens]


def read_scaffolds(source: str) -> tuple[list[Scaffold], tuple[Path, ...]]:
    """Read the scaffolds in `source`: one scaffold as SMILES, or the path of a file in any format of
    molecules. Returns the scaffolds, and the files that were read. Raises InputError for text that is no
    scaffold."""
    with rdBase.BlockLogs():
        try:
            unit = unit_of(source)
        except InputError:
            return [_read(Row(1, source), "scaffold")], ()
        path = Path(source)
        rows = read_found(path)
        return [_read(row, f"scaffold: {path}, {unit} {row.number}") for row in rows], (path,)


def _read(row: Row, where: str) -> Scaffold:
    try:
        molecule = read_molecule(row)
        for atom in molecule.GetAtoms():
            if not atom.GetAtomicNum():  # [1*] and R groups of SDF files
                atom.SetIsotope(0)
        starts = [*dict.fromkeys(write_starts(molecule))]
    except InputError as error:
        raise InputError(f"{where}: {row.text!r}: {error}") from None
    query = _query(molecule)
    return Scaffold(
        row.text.strip(), row.name, where, starts, query, query.GetNumAtoms() + (query is molecule)
    )


def write_starts(molecule: Chem.Mol) -> Iterator[str]:
    """Yield the starts of the scaffold `molecule`, SMILES that end where samples grow. There is one for
    each of its dummy atoms, at which the start ends; without dummy atoms, one for each kind of atom that
    has a hydrogen. Two fragments with one dummy atom each give two starts, either fragment first. Raises
    InputError for any other molecule."""
    points = _points(molecule)
    if any([bond.GetBondType() for bond in atom.GetBonds()] != [Chem.BondType.SINGLE] for atom in points):
        raise InputError(f"an attachment point {OPEN} needs one single bond")
    fragments = Chem.GetMolFrags(molecule, asMols=True)
    if len(fragments) == 1:
        grown = [molecule] if points else [*_with_point(molecule)]
        if not grown:
            raise InputError("no atom has a free valence")
        yield from (_write_to(fragment, point.GetIdx()) for fragment in grown for point in _points(fragment))
    elif len(fragments) == 2 and all(len(_points(fragment)) == 1 for fragment in fragments):
        for one, other in (fragments, fragments[::-1]):
            [end], [begin] = _points(one), _points(other)
            yield _write_to(one, end.GetIdx()) + Chem.MolToSmiles(other, rootedAtAtom=begin.GetIdx())[1:]
    else:
        raise InputError(f"expected one fragment, or two with one attachment point {OPEN} each")


def _points(molecule: Chem.Mol) -> list[Chem.Atom]:
    return [atom for atom in molecule.GetAtoms() if not atom.GetAtomicNum()]


def _with_point(molecule: Chem.Mol) -> Iterator[Chem.Mol]:
    """Yield the molecule with a dummy atom in place of a hydrogen, once for each set of equivalent atoms
    that have a hydrogen."""
    full, ranks = Chem.AddHs(molecule), [*Chem.CanonicalRankAtoms(molecule, breakTies=False)]
    for atom in {rank: index for index, rank in reversed([*enumerate(ranks)])}.values():
        hydrogens = [near for near in full.GetAtomWithIdx(atom).GetNeighbors() if near.GetAtomicNum() == 1]
        if hydrogens:
            grown = Chem.RWMol(full)
            grown.GetAtomWithIdx(hydrogens[0].GetIdx()).SetAtomicNum(0)
            yield Chem.RemoveHs(grown.GetMol())


def _write_to(molecule: Chem.Mol, last: int) -> str:
    """Write a molecule as SMILES that end in its dummy atom number `last`.

    Where a chain branches, the atoms farther from that atom come first. Of several spellings, which begin at
    different atoms, the shortest is returned. Raises InputError if RDKit writes none that ends there.
    """
    away, ranks = Chem.GetDistanceMatrix(molecule)[last], [*Chem.CanonicalRankAtoms(molecule)]
    order = sorted(range(len(ranks)), key=lambda atom: (-away[atom], ranks[atom]))
    ordered = Chem.RenumberAtoms(molecule, order)
    roots = [atom.GetIdx() for atom in ordered.GetAtoms() if atom.GetAtomicNum()]
    texts = [Chem.MolToSmiles(ordered, rootedAtAtom=root, canonical=False) for root in roots]
    if not any(map(_ends, texts)):
        texts = Chem.MolToRandomSmilesVect(ordered, _RANDOM, randomSeed=1)
    if not (ending := [*filter(_ends, texts)]):
        raise InputError("RDKit does not write it so that it ends where it may grow")
    return min(ending, key=lambda text: (len(text), text))


def _ends(text: str) -> bool:
    """Return whether SMILES end in a dummy atom, and begin with another atom."""
    return text.endswith(OPEN) and not text.startswith(OPEN)


def _query(molecule: Chem.Mol) -> Chem.Mol:
    """Return the query that finds a scaffold in molecules. A molecule matches a scaffold with dummy atoms
    only if it has grown from all of these, and from no other atom of the scaffold."""
    if not (points := _points(molecule)):
        return molecule
    rules = Chem.AdjustQueryParameters.NoAdjustments()
    rules.adjustDegree, rules.adjustDegreeFlags = True, Chem.AdjustQueryWhichFlags.ADJUST_IGNOREDUMMIES
    query = Chem.RWMol(Chem.AdjustQueryProperties(molecule, rules))
    for point in reversed(points):
        query.RemoveAtom(point.GetIdx())
    return query.GetMol()
