"""Turns raw molecules into rows of tokens, of SMILES, SELFIES or groups, and rows back into SMILES."""

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator
from rdkit import Chem

from pairflow.artifacts import read_object, token_dtype
from pairflow.config import Settings, check
from pairflow.data.classes import Properties
from pairflow.data.split import split_rows
from pairflow.errors import InputError
from pairflow.files import escaped, shown
from pairflow.kinds.molecules.data.fields import LOST, Row
from pairflow.kinds.molecules.data.own_column import OwnColumn, divide
from pairflow.kinds.molecules.data.reading import ReadMolecules, SavedChunks, say_too_long
from pairflow.kinds.molecules.data.representations import Representation, get_representation
from pairflow.kinds.molecules.settings import Conditioning, Molecules, Notation
from pairflow.kinds.molecules.structures.descriptors import compute
from pairflow.kinds.molecules.structures.standardise import has_mixed_stereo

if TYPE_CHECKING:
    from pairflow.flow.grammar import Grammar

BOS, EOS, MASK, PAD, UNK = range(5)
_MIXED = "mixed stereo"  # what is counted, as LOST is
SPECIALS = ("<bos>", "<eos>", "<mask>", "<pad>", "<unk>", *(f"<reserved{k}>" for k in range(5, 10)))


class UnknownToken(InputError):
    """A molecule has a token that is not in the vocabulary."""


class Vocabulary(Settings):
    """The symbols of a data set; a token's id is its index in `tokens`.

    Ids 0 to 9 are `SPECIALS` (five named, five reserved). The symbols of the data follow in sorted order. If
    the vocabulary extends that of a parent model, new symbols come last, sorted as well. `kind` says whether
    symbols are of SMILES, SELFIES or groups; `encode` takes and `decode` gives SMILES in all cases.
    """

    kind: Notation = "smiles"
    tokens: tuple[str, ...] = SPECIALS

    def extended(self, tokens: Iterable[str]) -> "Vocabulary":
        """Return this vocabulary with further tokens at its end, in sorted order."""
        return Vocabulary(kind=self.kind, tokens=self.tokens + tuple(sorted(set(tokens) - set(self.tokens))))

    @model_validator(mode="after")
    def _tokens_are_specials_and_symbols(self) -> "Vocabulary":
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            raise ValueError(f"a vocabulary begins with {', '.join(SPECIALS)}; found {self.tokens[:10]}")
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError("a vocabulary holds every token once; found a repeated one")
        for token in self.tokens[len(SPECIALS) :]:
            if not self.representation.accepts(token) or not token.isprintable() or " " in token:
                name = self.representation.name
                raise ValueError(f"a vocabulary holds tokens of {name}; found {shown(token)}")
        return self

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: k for k, token in enumerate(self.tokens)}

    @property
    def representation(self) -> Representation:
        """The notation of the symbols, with its functions between SMILES and tokens."""
        return get_representation(self.kind)

    @property
    def size(self) -> int:
        """K: the number of symbols, special and reserved ones included."""
        return len(self.tokens)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the content of vocabulary.json. A model and its token files must have the same
        hash."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def encode(self, smiles: str, length: int) -> list[int]:
        """Return the `length` ids of a molecule: `<bos>`, its tokens, `<eos>`, then `<pad>`. Raises
        InputError for too many tokens, and UnknownToken for a token that is not in the vocabulary."""
        tokens = self.representation.tokenize(smiles)
        if len(tokens) > length - 2:
            raise InputError(say_too_long(len(tokens), length))
        unknown = next((token for token in tokens if token not in self._ids), None)
        if unknown is not None:
            raise UnknownToken(f"unknown token {unknown}")
        ids = [BOS, *(self._ids[token] for token in tokens), EOS]
        return ids + [PAD] * (length - len(ids))

    def grammar(self, length: int) -> "Grammar | None":
        """Return the grammar of the rows of `length` ids that are whole molecules; None for SMILES and
        SELFIES."""
        ends = (self.tokens[BOS], self.tokens[EOS], self.tokens[PAD])
        make = self.representation.grammar
        return make(self.tokens, length, ends) if make else None

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
        """Return the content of vocabulary.json."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class PreparedMolecules:
    """A data set of molecules, ready for pairing and training.

    `train` (M, N) and `validation` (V, N) are token rows in data order, in the smallest dtype that holds K.

    `smiles` is a table with a line for each molecule: `row` (its index in the raw rows, from 0), `smiles`
    (canonical), `split` and, if rows have names, `name`. A split is train, validation or reference; a
    reference molecule is left out of training because of `training_rows`, but does not count as novel. If the
    rule `identity` is not "smiles", there is a column `key`, too: what identifies the molecule.

    `rejected` is a table with the columns `row`, `text` (raw), `reason` and `line`, the number of the row in
    its file. `repeats` has a pair for each duplicate: the number of its row in the file, and the index of the
    first row with its molecule.
    """

    train: np.ndarray
    validation: np.ndarray
    vocabulary: Vocabulary
    smiles: pd.DataFrame
    rejected: pd.DataFrame
    repeats: Sequence[tuple[int, int]] = ()

    @property
    def symbols(self) -> int:
        return self.vocabulary.size


def _note_kept(read: ReadMolecules, settings: Molecules) -> None:
    """Print on stderr how many molecules are kept without some of their stereochemistry, and how many rows
    are left out because the other part of the user's split has their molecule."""
    words = {
        _MIXED: "have racemic or relative stereocentres: one form of each is kept, as drawn",
        LOST: "have stereo marks that RDKit drops: they mark no stereocentre, or an axis, as of an allene",
    }
    for name, text in words.items() if settings.stereo == "keep" else ():
        if count := read.counts[name]:
            print(f"pairflow preprocess: note: {count:,} molecules {text}", file=sys.stderr)
    if settings.own_split and read.in_both:
        print(
            f"pairflow preprocess: note: {read.in_both:,} rows are left out, because they repeat a "
            "molecule of the other part of your split: the first row counts",
            file=sys.stderr,
        )


def prepare(
    rows: Iterable[Row],
    settings: Molecules,
    validation_rows: Sequence[int] | None = None,
    parent: Vocabulary | None = None,
    processes: int = 1,
    saved: SavedChunks | None = None,
) -> PreparedMolecules:
    """Turn raw SMILES into token rows of N = `settings.length`, split into training and validation.

    Each row is stripped, standardised, made canonical (RDKit) and written in the representation's tokens.
    Rows that cannot be used are listed with their reason. Memory holds only canonical SMILES, tokens and
    rejected texts.

    Args:
        rows: the raw rows; if users have split their data, `part` says to which part a row belongs.
        settings: the settings of the data.
        validation_rows: a published split, as indices of `rows`. A scaffold split and the user's own split
            ignore it; if there is no split, `split_rows` draws one.
        parent: the vocabulary of the model to start from; the new vocabulary has its tokens and all tokens of
            the molecules.
        processes: the number of processes at work.
        saved: what an interrupted run has read.

    Raises InputError if more than `max_too_long_share` of the molecules do not fit, if no molecule is left,
    if `validation_rows` has a row that does not exist, if the parent has another representation, and if the
    split leaves no validation rows or fewer training rows than `training_rows`.
    """
    length, share = settings.length, settings.max_too_long_share
    read = ReadMolecules(rows, settings, length, processes, _count_stereo, saved)
    overlong = len(read.too_long)
    if overlong > share * (total := overlong + len(read)):
        raise InputError(
            f"length: {overlong} of {total} molecules ({overlong / total:.2%}) do not fit N = {length}; "
            f"the largest share allowed is {share:.2%}; all fit N = {max(read.too_long) + 2}"
        )
    if not len(read):
        raise InputError(f"no molecule is left{read.summarise_rejected()}")
    kind = settings.representation
    if parent is not None and parent.kind != kind:
        raise InputError(f"representation: {kind}, but the model to start from has {parent.kind}")
    vocabulary = (parent or Vocabulary(kind=kind)).extended(read.tokens)
    table = np.full((len(read), length), PAD, token_dtype(vocabulary.size))
    read.write(table, {token: k for k, token in enumerate(vocabulary.tokens)}, BOS, EOS)
    _note_kept(read, settings)
    molecules = read.molecules
    groups, indices = None, molecules["row"].to_numpy()
    if settings.own_split:
        validation_rows = indices[molecules["held_out"].to_numpy()]
    elif settings.split == "scaffold":
        validation_rows, groups = None, molecules["scaffold"].to_numpy()
    else:
        outside = next((row for row in validation_rows or () if not 0 <= row < read.total), None)
        if outside is not None:
            rows_of_data = f"expected 0 to {read.total - 1} (the data's rows)"
            raise InputError(f"validation rows: {rows_of_data}, found {outside}")
    drawn = settings.validation_fraction, settings.split_seed, settings.training_rows
    side = split_rows(indices, *drawn, validation_rows, groups)
    columns = {"row": indices, "smiles": as_series(molecules["smiles"]), "split": side}
    if settings.identity != "smiles":
        columns["key"] = as_series(molecules["key"])
    if pc.any(pc.not_equal(molecules["name"], "")).as_py():
        columns["name"] = as_series(molecules["name"])
    return PreparedMolecules(
        train=table[side == "train"],
        validation=table[side == "validation"],
        vocabulary=vocabulary,
        smiles=pd.DataFrame(columns),
        rejected=pd.DataFrame(read.rejected, columns=["row", "text", "reason", "line"]).astype(
            {"line": "int64"}
        ),
        repeats=read.repeats,
    )


def _count_stereo(molecule: Chem.Mol, standardised: Chem.Mol | None) -> list[str]:
    present = {_MIXED: has_mixed_stereo(molecule), LOST: molecule.HasProp(LOST)} if standardised else {}
    return [name for name, found in present.items() if found]


def as_series(texts: pa.ChunkedArray) -> pd.Series:
    """Return texts as a pandas column that stays in Arrow, because Python objects take more memory."""
    return pd.Series(texts.combine_chunks(), dtype=pd.ArrowDtype(pa.large_string()))


def label_molecules(
    conditioned: Sequence[Conditioning],
    molecules: pd.DataFrame,
    table: Path,
    repeats: Sequence[tuple[int, int]] = (),
    sheet: str | None = None,
) -> tuple[Properties, np.ndarray]:
    """Divide properties into classes by their values in training molecules, and label all M molecules.

    Returns the properties with their classes, and the labels (class numbers), (M,) of one or (M, P) of P
    properties. `molecules` is `PreparedMolecules.smiles`; its column `row` counts the rows of the raw file
    `table`, or of the table's `sheet`. `repeats` has a pair for each duplicate, as in `PreparedMolecules`.
    Prints on stderr which fields of a column are not used. Raises InputError for a column that is missing,
    and if a class would be empty.
    """
    training, values = (molecules["split"] == "train").to_numpy(), []
    kept = {*molecules["row"]}
    for setting in conditioned:
        if setting.property:
            values.append(compute(setting.property, molecules["smiles"].tolist()))
            continue
        column = OwnColumn.read(table, str(setting.column), setting.named(), sheet)
        pairs = [(line, column.lines[first]) for line, first in repeats if first in kept]
        column = column.combined(pairs, setting.replicates)
        print(f"pairflow preprocess: note: {escaped(column.summarise())}", file=sys.stderr)
        values.append(column.numbers[molecules["row"]])
    condition = Properties(
        tuple(divide(setting, column[training]) for setting, column in zip(conditioned, values, strict=True))
    )
    return condition, condition.labels(values)
