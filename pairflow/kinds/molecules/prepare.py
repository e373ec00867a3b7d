"""Turns raw molecules into rows of tokens, of SMILES, SELFIES or groups, and rows back into SMILES."""

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import model_validator
from rdkit import Chem, rdBase

from pairflow.artifacts import digest, read_object, token_dtype
from pairflow.config import Settings, check, nearest
from pairflow.data.classes import Classes, Properties
from pairflow.data.prepared import parent_digest, write_prepared
from pairflow.data.split import split_rows
from pairflow.errors import InputError
from pairflow.kinds.molecules import data_sets, library
from pairflow.kinds.molecules.descriptors import compute
from pairflow.kinds.molecules.library import Row
from pairflow.kinds.molecules.representations import Representation, get_representation
from pairflow.kinds.molecules.settings import Conditioning, Molecules, Notation, Standardisation
from pairflow.kinds.molecules.standardise import parse, scaffold, standardise

BOS, EOS, MASK, PAD, UNK = range(5)
SPECIALS = ("<bos>", "<eos>", "<mask>", "<pad>", "<unk>", *(f"<reserved{k}>" for k in range(5, 10)))


class Vocabulary(Settings):
    """The symbols of a data set; a token's id is its index in `tokens`.

    Ids 0 to 9 are `SPECIALS` (five named, five reserved). The symbols of the data follow in sorted order. If
    the vocabulary extends that of a parent model, new symbols come last, sorted as well. `kind` says whether
    symbols are of SMILES, SELFIES or groups; `encode` takes and `decode` gives SMILES in all cases.
    """

    kind: Notation = "smiles"
    tokens: tuple[str, ...] = SPECIALS

    def extended(self, tokens: Iterable[str]) -> "Vocabulary":
        """This vocabulary with further tokens at its end, in sorted order."""
        return Vocabulary(kind=self.kind, tokens=self.tokens + tuple(sorted(set(tokens) - set(self.tokens))))

    @model_validator(mode="after")
    def _tokens_are_specials_and_symbols(self) -> "Vocabulary":
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            raise ValueError(f"a vocabulary begins with {', '.join(SPECIALS)}; found {self.tokens[:10]}")
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError("a vocabulary holds every token once; found a repeated one")
        for token in self.tokens[len(SPECIALS) :]:
            if not self.representation.pattern.fullmatch(token) or not token.isprintable() or " " in token:
                raise ValueError(f"a vocabulary holds tokens of {self.representation.name}; found {token!r}")
        return self

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: k for k, token in enumerate(self.tokens)}

    @property
    def representation(self) -> Representation:
        """The functions between SMILES and tokens."""
        return get_representation(self.kind)

    @property
    def size(self) -> int:
        """K: the number of symbols, special and reserved ones included."""
        return len(self.tokens)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the JSON. A model and its token files must have the same hash."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def encode(self, smiles: str, length: int) -> list[int]:
        """Return the `length` ids of a molecule: `<bos>`, its tokens, `<eos>`, then `<pad>`. Raises
        InputError for too many tokens, or for one that is not in the vocabulary."""
        tokens = self.representation.tokenize(smiles)
        _check_fits(tokens, length)
        unknown = next((token for token in tokens if token not in self._ids), None)
        if unknown is not None:
            raise InputError(f"unknown token {unknown}")
        ids = [BOS, *(self._ids[token] for token in tokens), EOS]
        return ids + [PAD] * (length - len(ids))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the SMILES of one row of ids."""
        return self.representation.join(self.symbols(ids))

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of a row of ids up to its first `<eos>`, without `<bos>` and `<pad>`. Other
        special symbols are spelt out (`<mask>`), so that the string is not a valid molecule."""
        written = takewhile(lambda token: token != EOS, map(int, ids))
        return [self.tokens[token] for token in written if token not in (BOS, PAD)]

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read a vocabulary.json. Raises InputError if the file is missing or has other content."""
        try:
            content = read_object(Path(path))
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; expected a vocabulary") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: not a vocabulary: {error}") from None
        return check(cls, content, path)

    def to_json(self) -> str:
        """The content of vocabulary.json."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class PreparedMolecules:
    """A data set of molecules, ready for pairing and training.

    `train` (M, N) and `validation` (V, N) are token rows in data order, in the smallest dtype that holds K.
    `smiles` has one line per molecule: `row` (its index in the raw rows, from 0), `smiles` (canonical),
    `split` and, if rows have names, `name`. A split is train, validation or reference; a reference row is
    left out of training because of `training_rows`, but does not count as novel. `rejected` has `row`, `text`
    (raw), `reason` and `line`, the number of the row in its file.
    """

    train: np.ndarray
    validation: np.ndarray
    vocabulary: Vocabulary
    smiles: pd.DataFrame
    rejected: pd.DataFrame

    @property
    def symbols(self) -> int:
        """K, the number of symbols."""
        return self.vocabulary.size


def prepare(
    rows: Iterable[Row],
    settings: Molecules,
    validation_rows: Sequence[int] | None = None,
    parent: Vocabulary | None = None,
) -> PreparedMolecules:
    """Turn raw SMILES into token rows of N = `settings.length`, split into training and validation.

    Each row is stripped, standardised, made canonical (RDKit) and written in the representation's tokens.
    Rows that cannot be used are listed with their reason. Memory holds only canonical SMILES, tokens and
    rejected texts.

    `validation_rows` (indices of `rows`) are a published split; a scaffold split ignores it. Without it
    `split_rows` draws one. The vocabulary has the tokens of the `parent`, if there is one, and all tokens of
    the molecules.

    Raises InputError if more than `max_too_long_share` of the molecules do not fit, if no molecule is left,
    if `validation_rows` has a row that does not exist, if the parent has another representation, and if the
    split leaves no validation rows or fewer training rows than `training_rows`.
    """
    length, share = settings.length, settings.max_too_long_share
    read = ReadMolecules(rows, settings, length)
    counts = read.token_counts
    overlong = sum(count > length - 2 for count in counts)
    if overlong > share * len(counts):
        raise InputError(
            f"length: {overlong} of {len(counts)} molecules ({overlong / len(counts):.2%}) do not fit "
            f"N = {length}; the largest share allowed is {share:.2%}; all fit N = {max(counts) + 2}"
        )
    if not read.smiles:
        raise InputError(f"no molecule is left{read.summarise_rejected()}")
    kind = settings.representation
    if parent is not None and parent.kind != kind:
        raise InputError(f"representation: {kind}, but the model to start from has {parent.kind}")
    vocabulary = (parent or Vocabulary(kind=kind)).extended(read.tokens)
    table = read.table(vocabulary, length)
    groups = None
    if settings.split == "scaffold":
        validation_rows, groups = None, read.scaffolds
    else:
        outside = next((row for row in validation_rows or () if not 0 <= row < read.total), None)
        if outside is not None:
            rows_of_data = f"expected 0 to {read.total - 1} (the data's rows)"
            raise InputError(f"validation rows: {rows_of_data}, found {outside}")
    drawn = settings.validation_fraction, settings.split_seed, settings.training_rows
    side = split_rows(read.rows, *drawn, validation_rows, groups)
    named = {"name": read.names} if any(read.names) else {}
    return PreparedMolecules(
        train=table[side == "train"],
        validation=table[side == "validation"],
        vocabulary=vocabulary,
        smiles=pd.DataFrame({"row": read.rows, "smiles": read.smiles, "split": side, **named}),
        rejected=pd.DataFrame(read.rejected, columns=["row", "text", "reason", "line"]).astype(
            {"line": "int64"}
        ),
    )


class ReadMolecules:
    """Reads all rows of a file into the molecules that fit `length`, and the rejected rows.

    Attributes:
        rows, smiles, names: an entry for each molecule; `rows` are indices from 0.
        tokens: token -> its number, in the order of appearance.
        written: the numbers of the tokens of all molecules, joined.
        scaffolds: the number of the scaffold of each molecule; without a scaffold split all are 0.
        numbers: the number in the file of each molecule.
        rejected: row, text, reason and number in the file of each rejected row.
        token_counts: the numbers of tokens, also of molecules that are too long.
    """

    def __init__(self, rows: Iterable[Row], settings: Molecules, length: int):
        self.settings = settings
        self.total = 0
        self.rows, self.written, self.token_counts = array("q"), array("I"), array("q")
        self.smiles: list[str] = []
        self.names: list[str] = []
        self.tokens: dict[str, int] = {}
        self.scaffolds: list[int] = []
        self.numbers = array("q")
        self.rejected: list[tuple[int, str, str, int]] = []
        self._first: dict[str, int] = {}  # SMILES: its first row
        self._numbers: dict[str, int] = {}  # scaffold: its number
        self._tokenize = get_representation(settings.representation).tokenize
        with rdBase.BlockLogs():
            for row in rows:
                try:
                    self._add(row, length)
                except InputError as reason:
                    self.rejected.append((self.total, row.text, str(reason), row.number))
                self.total += 1
        if settings.min_count > 1:
            self._leave_out_rare(settings.min_count, length)

    def standardise(self, raw: Chem.Mol) -> tuple[Chem.Mol, str]:
        """Return the standardised molecule and its SMILES. Raises InputError if a rule rejects it."""
        return canonicalise(raw, self.settings)

    def _add(self, row: Row, length: int) -> None:
        """Add the molecule of a row. Raises InputError, with the reason, if it is left out."""
        molecule, smiles = self.standardise(read_molecule(row))
        most_atoms = self.settings.max_heavy_atoms
        if most_atoms is not None and molecule.GetNumHeavyAtoms() > most_atoms:
            raise InputError(f"over {most_atoms} heavy atoms (left out by the experiment)")
        tokens = self._tokenize(smiles)
        if self.settings.drop_duplicates and self._first.setdefault(smiles, self.total) != self.total:
            raise InputError(f"duplicate of row {self._first[smiles]}")
        self.token_counts.append(len(tokens))
        # Scaffolds of too long molecules get numbers as well, because the split depends on the numbers.
        name = scaffold(molecule) if self.settings.split == "scaffold" else ""
        group = self._numbers.setdefault(name, len(self._numbers))
        _check_fits(tokens, length)
        self.rows.append(self.total)
        self.numbers.append(row.number)
        self.smiles.append(smiles)
        self.names.append(row.name)
        self.written.extend(self.tokens.setdefault(token, len(self.tokens)) for token in tokens)
        self.scaffolds.append(group)

    def _leave_out_rare(self, least: int, length: int) -> None:
        """Leave out the molecules with a token that fewer than `least` molecules have, and such tokens."""
        counts, written = np.frombuffer(self.token_counts, np.int64), np.frombuffer(self.written, np.uint32)
        fitting = counts <= length - 2
        owners = np.repeat(np.arange(len(self.rows)), counts[fitting])
        pairs = np.unique(owners * len(self.tokens) + written)
        rare = np.bincount(pairs % len(self.tokens), minlength=len(self.tokens)) < least
        names, is_rare = [*self.tokens], rare[written]
        firsts = np.unique(owners[is_rare], return_index=True)
        for molecule, first in zip(firsts[0], written[is_rare][firsts[1]], strict=True):
            token = names[first]
            row = self.rows[molecule]
            reason = f"rare token {token} (fewer than {least} molecules)"
            self.rejected.append((row, self.smiles[molecule], reason, self.numbers[molecule]))
        self.rejected.sort()
        kept = np.ones(len(self.rows), bool)
        kept[owners[rare[written]]] = False
        numbers = np.cumsum(~rare) - 1  # of the tokens that stay
        self.written = array("I", numbers[written[kept[owners]]].astype(np.uint32).tobytes())
        self.token_counts = array("q", np.concatenate([counts[fitting][kept], counts[~fitting]]).tobytes())
        self.tokens = {token: number for number, token in enumerate(compress(names, ~rare))}
        for name in ("rows", "smiles", "names", "scaffolds", "numbers"):
            values = getattr(self, name)
            chosen = compress(values, kept)
            setattr(self, name, array("q", chosen) if isinstance(values, array) else [*chosen])

    def summarise_rejected(self) -> str:
        """Say in words the most frequent reason for rejected rows, and the first row with it."""
        if not self.rejected:
            return ": there are no rows"
        reason, number = Counter(reason for _, _, reason, _ in self.rejected).most_common(1)[0]
        row, text = next((row, text) for row, text, why, _ in self.rejected if why == reason)
        return f" of {self.total} rows: {number} {reason} (the first: row {row}, {text!r})"

    def table(self, vocabulary: Vocabulary, length: int) -> np.ndarray:
        """Return the token rows (M, N), each as `Vocabulary.encode` gives it."""
        ids = {token: k for k, token in enumerate(vocabulary.tokens)}
        table = np.full((len(self.rows), length), PAD, token_dtype(vocabulary.size))
        symbols = np.array([ids[token] for token in self.tokens], table.dtype)
        counts = np.frombuffer(self.token_counts, np.int64)
        counts, positions = counts[counts <= length - 2], np.arange(length)
        table[:, 0] = BOS
        table[(positions > 0) & (positions <= counts[:, None])] = symbols[
            np.frombuffer(self.written, np.uint32)
        ]
        table[np.arange(len(table)), counts + 1] = EOS
        return table


def _check_fits(tokens: list[str], length: int) -> None:
    if len(tokens) > length - 2:
        raise InputError(f"too long ({len(tokens)} tokens, limit {length - 2})")


def read_molecule(row: Row) -> Chem.Mol:
    """Read the molecule of a raw row, not yet standardised. Raises InputError if the row is no molecule."""
    if row.reason:
        raise InputError(row.reason)
    return parse(row.text.strip())


def canonicalise(raw: Chem.Mol, rules: Standardisation) -> tuple[Chem.Mol, str]:
    """Return the standardised molecule and its SMILES. Raises InputError if a rule rejects it."""
    molecule = standardise(raw, rules)
    return molecule, Chem.MolToSmiles(molecule)


def store(settings: Molecules, files: Mapping[str, Path], parent: Path | None, progress: bool) -> None:
    """Prepare a data set, and write its token rows, canonical SMILES with their hashes, and rejected rows."""
    source = data_sets.source_of(settings)
    symbols = Vocabulary.load(parent) if parent else None
    prepared = source.read(settings, progress=progress, parent=symbols)
    parts = {"train": prepared.train, "validation": prepared.validation}
    row_format: dict[str, Any] = {"padding": PAD, "mask": MASK}
    labels = None
    if settings.conditioned:
        condition, every = label_molecules(settings.conditioned, prepared.smiles, source.fetch())
        labels = {split: every[prepared.smiles["split"] == split] for split in parts}
        row_format["condition"] = condition.facts
    write_prepared(
        files,
        parts,
        prepared.vocabulary.to_json(),
        prepared.symbols,
        settings.model_dump(mode="json"),
        {"source": digest(source.fetch()), **parent_digest(parent)},
        labels=labels,
        smiles=prepared.smiles,
        rejected=prepared.rejected,
        **row_format,
    )


def label_molecules(
    conditioned: Sequence[Conditioning], molecules: pd.DataFrame, table: Path
) -> tuple[Properties, np.ndarray]:
    """Divide properties into classes by their values in training molecules, and label all M molecules.

    Returns the properties, and the labels (M,) or (M, P), see `Properties`. `molecules` is
    `PreparedMolecules.smiles`, whose `row` counts the rows of the raw file `table`. Raises InputError for a
    column that is missing or has text that is no number, and if a class would be empty.
    """
    training = (molecules["split"] == "train").to_numpy()
    values = [
        compute(setting.property, molecules["smiles"].tolist())
        if setting.property
        else _read_numbers(table, str(setting.column))[molecules["row"]]
        for setting in conditioned
    ]
    condition = Properties(
        tuple(
            Classes.from_values(setting.name(), column[training], setting.labels(), setting.number)
            for setting, column in zip(conditioned, values, strict=True)
        )
    )
    return condition, condition.labels(values)


def _read_numbers(table: Path, column: str) -> np.ndarray:
    """Read the numbers (R,) in a column of the raw file, NaN where a field is empty. Raises InputError if the
    column is missing, or if another field is not a number."""
    if (kind := library.format_of(table)) not in library.TABLES:
        raise InputError(f"{table}: a {kind} file has no columns, so there is no column '{column}'")
    fields = library.columns(table, 2**31)
    if column not in fields:
        missing = f"no column '{column}'{nearest(column, fields)}; found {', '.join(fields)}"
        raise InputError(f"{table}: {missing}")
    try:
        numbers = [float(field) if field.strip() else np.nan for field in fields[column]]
    except ValueError as error:
        raise InputError(f"{table}: column '{column}': {error}") from None
    return np.array(numbers, np.float64)
