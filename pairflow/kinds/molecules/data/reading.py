"""Reads the molecules of a file in several processes: standardises and tokenises them, and lists the rest.

Memory holds about 200 bytes of each molecule: texts as Arrow arrays, tokens as numbers of one or two bytes.
"""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rdkit import Chem, rdBase

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.fields import HELD_OUT, LOST, Row, read_smiles
from pairflow.kinds.molecules.data.known import hash_text
from pairflow.kinds.molecules.data.representations import get_representation
from pairflow.kinds.molecules.settings import Molecules, Standardisation
from pairflow.kinds.molecules.structures.standardise import identify, scaffold, standardise, write_smiles
from pairflow.runtime.processes import map_chunks
from pairflow.runtime.resume import SEAL, LongWork, StateFiles, add_earlier_costs, remove_states

_CHUNK = 512  # rows that are sent to a process at a time
_SAVED = 100  # chunks that are saved together, so that a stopped run loses at most 51,200 rows
_FEW = 16  # chunks for which no other process is started
COLUMNS = pa.schema(
    {
        "row": pa.int64(),  # its index, from 0
        "number": pa.int64(),  # of the row in the file
        "smiles": pa.large_string(),  # canonical
        "name": pa.large_string(),  # may be empty
        "scaffold": pa.int64(),  # its number; 0 for all without a scaffold split
        "size": pa.int64(),  # the number of tokens
        "held_out": pa.bool_(),  # whether the user's own split holds it out
        "key": pa.large_string(),  # what identifies it; empty if its SMILES do
    }
)
Count = Callable[[Chem.Mol, Chem.Mol | None], Iterable[str]]
"""Names what is to be counted in a molecule, before and after standardisation (None if a rule rejects it)."""


def read_molecule(row: Row) -> Chem.Mol:
    """Read the molecule of a raw row, not yet standardised. Raises InputError if the row is no molecule."""
    if row.reason:
        raise InputError(row.reason)
    molecule = read_smiles(row.text.strip())
    if row.lost:
        molecule.SetBoolProp(LOST, True)
    return molecule


def canonicalise(raw: Chem.Mol, rules: Standardisation, text: str = "") -> tuple[Chem.Mol, str]:
    """Return the molecule `raw`, standardised, and its canonical SMILES. `text` is the SMILES that it was
    read from, if known, which saves time. Raises InputError if a rule rejects the molecule."""
    molecule = standardise(raw, rules)
    return molecule, write_smiles(molecule, text.strip() if molecule is raw else "")


def say_too_long(size: int, length: int) -> str:
    """Return the reason to leave out a molecule of `size` tokens, which do not fit rows of `length`."""
    return f"too long ({size} tokens, limit {length - 2})"


class _Molecule(NamedTuple):
    """What is kept of a molecule of a chunk. `row` is the index of its row, `number` the number of the row in
    the file, `size` the number of tokens, and `key` what identifies it; empty if its SMILES do."""

    row: int
    number: int
    text: str
    smiles: str
    name: str
    scaffold: str
    size: int  # its number of tokens
    held_out: bool = False
    key: str = ""  # what identifies it; empty if its SMILES does


class _Chunk(NamedTuple):
    """What a process has read from a chunk of `rows` rows. `written` has the tokens of all molecules, one
    molecule after the other, as indices of `tokens`. `rejected` has (index, text, reason, number in the
    file) of each rejected row, and `counts` how often each feature was named."""

    rows: int
    molecules: list[_Molecule]
    written: np.ndarray
    tokens: list[str]
    rejected: list[tuple[int, str, str, int]]
    counts: Counter[str]


def _read(settings: Molecules, count: Count | None, rows: list[tuple[int, Row]]) -> _Chunk:
    """Read the molecules of rows; each row comes with its index. `count`, if given, names the features of
    a molecule, which are counted."""
    tokenize = get_representation(settings.representation).tokenize
    numbers, written = dict[str, int](), array("I")
    molecules, rejected, counts = [], [], Counter[str]()
    with rdBase.BlockLogs():
        for index, row in rows:
            try:
                raw, molecule = read_molecule(row), None
                try:
                    molecule, smiles = canonicalise(raw, settings, row.text)
                finally:
                    counts.update(count(raw, molecule) if count else ())
                most = settings.max_heavy_atoms
                if most is not None and molecule.GetNumHeavyAtoms() > most:
                    raise InputError(f"over {most} heavy atoms (left out by the experiment)")
                tokens = tokenize(smiles)
            except InputError as reason:
                rejected.append((index, row.text, str(reason), row.number))
                continue
            group = scaffold(molecule) if settings.split == "scaffold" else ""
            key = "" if settings.identity == "smiles" else identify(smiles, settings.identity)
            facts = row.text, smiles, row.name, group, len(tokens), row.part == HELD_OUT, key
            molecules.append(_Molecule(index, row.number, *facts))
            written.extend(numbers.setdefault(token, len(numbers)) for token in tokens)
    return _Chunk(len(rows), molecules, _numbers(written), [*numbers], rejected, counts)


class SavedChunks:
    """The chunks of rows that an interrupted run has read, saved in files of _SAVED chunks each."""

    def __init__(self, work: LongWork, out: Path, identity: Mapping[str, Any]):
        self.files = StateFiles(work.resume.state_folder(out, "preprocess", identity), ".json")
        self.spent, self.provenance = self.files.folder / "spent", work.provenance
        self.number, self.pending = 0, list[_Chunk]()
        add_earlier_costs(self.spent, work.provenance)

    def load(self, chunks: Iterator[Any]) -> Iterator[_Chunk]:
        """Yield the saved chunks, and take as many chunks of rows from `chunks`, so that only unread ones are
        left."""
        while path := self.files.find(str(self.number)):
            saved = json.loads(path.read_bytes()[:-SEAL])
            for (rows, molecules, written, tokens, rejected, counts), _ in zip(saved, chunks, strict=False):
                read = [_Molecule(*molecule) for molecule in molecules]
                reasons = [(row, text, reason, number) for row, text, reason, number in rejected]
                yield _Chunk(rows, read, _numbers(written), tokens, reasons, Counter(counts))
            self.number += 1

    def add(self, chunk: _Chunk) -> None:
        """Add a chunk, and save the chunks that are not saved yet as soon as there are _SAVED of them."""
        self.pending.append(chunk)
        if len(self.pending) == _SAVED:
            self.provenance.write(self.spent)
            content = json.dumps([each._replace(written=each.written.tolist()) for each in self.pending])
            self.files.save(str(self.number), lambda file: file.write(content.encode()))
            self.number, self.pending = self.number + 1, []

    def remove(self) -> None:
        remove_states(self.files.folder)


def _numbers(values: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return numbers as an array of the smallest unsigned type that holds them."""
    numbers = np.asarray(values, np.uint32)
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


class _Part(NamedTuple):
    """The molecules of a chunk that fit: a `table` with a row for each; and their tokens (`written`), one
    molecule after the other, as the numbers in `ReadMolecules.tokens`."""

    table: pa.Table
    written: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return self.table["size"].to_numpy()


class ReadMolecules:
    """Reads all rows of a file into the molecules that fit `length`, and the rejected rows.

    `processes` is the number of processes at work. `count` is a function from a molecule as read, and
    standardised (None if a rule rejects it), to the names of its features, which are counted. `saved` has
    what an interrupted run has read.

    Attributes:
        total: the number of rows.
        tokens: the tokens, each with its number.
        rejected: index (from 0), text, reason and number in the file of each rejected row.
        duplicates: the number of molecules that are left out because they are equal to an earlier one.
        in_both: how many duplicates the user's split puts on the other side than the earlier molecule.
        repeats: for each duplicate the number of its row in the file, and the index of the earlier row.
        too_long: the numbers of tokens of the molecules that are too long.
        counts: how often `count` has named each feature.
    """

    lists_duplicates = True  # among the rejected rows

    def __init__(
        self,
        rows: Iterable[Row],
        settings: Molecules,
        length: int,
        processes: int = 1,
        count: Count | None = None,
        saved: "SavedChunks | None" = None,
    ):
        self.repeats: list[tuple[int, int]] = []
        self.total, self.tokens, self.counts = 0, dict[str, int](), Counter[str]()
        self.rejected: list[tuple[int, str, str, int]] = []
        self.too_long: list[int] = []
        self.duplicates = self.in_both = 0
        self._held_out = set[int]()  # rows
        self._parts: list[_Part] = []
        self._scaffolds: dict[str, int] = {}  # scaffold: its number
        first = dict[int, int]() if settings.drop_duplicates else None  # hash of a key: its first row
        numbered = enumerate(rows)
        chunks = iter(lambda: [*islice(numbered, _CHUNK)], [])
        read = partial(_read, settings, count)
        for chunk in saved.load(chunks) if saved else ():
            self._add(chunk, length, first)
        few = map(read, islice(chunks, _FEW))
        for chunk in chain(few, map_chunks(read, chunks, processes)):
            self._add(chunk, length, first)
            if saved:
                saved.add(chunk)
        if settings.min_count > 1:
            self._leave_out_rare(settings.min_count)

    def _add(self, chunk: _Chunk, length: int, first: dict[int, int] | None) -> None:
        """Add the molecules of a chunk that fit `length`. `first` maps the hash of each molecule to the index
        of its first row, and grows; later rows of a molecule are duplicates. If `first` is None, duplicates
        are kept."""
        rejected, kept = [*chunk.rejected], list[dict[str, object]]()
        fits = np.zeros(len(chunk.molecules), bool)
        self._held_out.update(molecule.row for molecule in chunk.molecules if molecule.held_out)
        for place, molecule in enumerate(chunk.molecules):
            row, number, text, smiles, _, group, size, held_out, key = molecule
            original = first.setdefault(hash_text(key or smiles), row) if first is not None else row
            if original != row:
                self.duplicates += 1
                self.in_both += held_out != (original in self._held_out)
                self.repeats.append((number, original))
                if self.lists_duplicates:
                    rejected.append((row, text, f"duplicate of row {original}", number))
                continue
            # Scaffolds of too long molecules get numbers as well, because the split depends on the numbers.
            scaffold = self._scaffolds.setdefault(group, len(self._scaffolds))
            fits[place] = size <= length - 2
            if fits[place]:
                kept.append(molecule._asdict() | {"scaffold": scaffold})
            else:
                self.too_long.append(size)
                rejected.append((row, text, say_too_long(size, length), number))
        self.total += chunk.rows
        self.counts += chunk.counts
        self.rejected += sorted(rejected)
        sizes = np.array([molecule.size for molecule in chunk.molecules], np.int64)
        used, written = np.unique(chunk.written[np.repeat(fits, sizes)], return_inverse=True)
        joined = [self.tokens.setdefault(chunk.tokens[token], len(self.tokens)) for token in used]
        table = pa.Table.from_pylist(kept, COLUMNS)
        self._parts.append(_Part(table, _numbers(np.array(joined, np.uint32)[written])))

    def _leave_out_rare(self, least: int) -> None:
        """Reject the molecules that have a rare token, one that fewer than `least` molecules have, and remove
        the rare tokens from `tokens`."""
        names = [*self.tokens]
        holders = np.zeros(len(names), np.int64)
        for part in self._parts:
            owners = np.repeat(np.arange(len(part.table)), part.sizes)
            pairs = np.unique(owners * len(names) + part.written)
            holders += np.bincount(pairs % len(names), minlength=len(names))
        rare = holders < least
        numbers = np.cumsum(~rare) - 1  # of the tokens that stay
        for place, part in enumerate(self._parts):
            owners, is_rare = np.repeat(np.arange(len(part.table)), part.sizes), rare[part.written]
            molecules, firsts = np.unique(owners[is_rare], return_index=True)
            for molecule, token in zip(molecules, part.written[is_rare][firsts], strict=True):
                reason = f"rare token {names[token]} (fewer than {least} molecules)"
                [found] = part.table.slice(molecule, 1).to_pylist()
                self.rejected.append((found["row"], found["smiles"], reason, found["number"]))
            kept = np.ones(len(part.table), bool)
            kept[molecules] = False
            written = _numbers(numbers[part.written[np.repeat(kept, part.sizes)]])
            self._parts[place] = _Part(part.table.filter(pa.array(kept)), written)
        self.rejected.sort()
        self.tokens = {token: number for number, token in enumerate(compress(names, ~rare))}

    def __len__(self) -> int:
        """Return the number of molecules that fit."""
        return sum(len(part.table) for part in self._parts)

    @property
    def molecules(self) -> pa.Table:
        """The M molecules that fit, as a table with COLUMNS."""
        return pa.concat_tables([COLUMNS.empty_table(), *(part.table for part in self._parts)])

    def tokens_within(self, size: int) -> set[str]:
        """Return the tokens that occur in molecules of at most `size` tokens."""
        names = np.array([*self.tokens], object)
        within = [part.written[np.repeat(part.sizes <= size, part.sizes)] for part in self._parts]
        return {*names[np.unique(np.concatenate([*map(np.unique, within)]))]}

    def summarise_rejected(self) -> str:
        """Say the most frequent reason for rejected rows, and the first row with it, as the end of a
        sentence."""
        if not self.rejected:
            return ": there are no rows"
        reason, number = Counter(reason for _, _, reason, _ in self.rejected).most_common(1)[0]
        row, text = next((row, text) for row, text, why, _ in self.rejected if why == reason)
        return f" of {self.total} rows: {number} {reason} (the first: row {row}, {text!r})"

    def write(self, table: np.ndarray, ids: Mapping[str, int], begin: int, end: int) -> None:
        """Fill the rows of `table` (M, N): the id `begin`, the ids of a molecule's tokens, and the id `end`.
        `ids` maps tokens to ids. Positions after the end keep what they have."""
        symbols = np.array([ids[token] for token in self.tokens], table.dtype)
        positions, first = np.arange(table.shape[1]), 0
        for part in self._parts:
            rows = table[first : first + len(part.table)]
            rows[:, 0] = begin
            rows[(positions > 0) & (positions <= part.sizes[:, None])] = symbols[part.written]
            rows[np.arange(len(rows)), part.sizes + 1] = end
            first += len(part.table)
