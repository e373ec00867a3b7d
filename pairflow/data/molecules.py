"""Molecules: raw SMILES to rows of tokens and back (protocol, section 6)."""

import csv
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from tqdm import tqdm

from pairflow.artifacts import token_dtype
from pairflow.data.split import split_rows
from pairflow.errors import InputError

BOS, EOS, MASK, PAD, UNK = range(5)
SPECIALS = ("<bos>", "<eos>", "<mask>", "<pad>", "<unk>", *(f"<reserved{k}>" for k in range(5, 10)))

# Bracket atoms, two-letter elements and two-digit ring closures stay whole; all else is one character.
_TOKEN = re.compile(r"\[[^\[\]]+\]|Br|Cl|%\d\d|->|<-|[BCNOSPFIbcnosp*]|[-=#$:/\\.()]|\d")


def tokenize(smiles: str) -> list[str]:
    """Split a SMILES string into its atoms, bonds, branches and ring closures.

    Raises InputError where a character belongs to no token: the pieces always join back to the string.
    """
    tokens = _TOKEN.findall(smiles)
    if "".join(tokens) != smiles:
        raise InputError(f"not a SMILES string: {smiles!r} holds characters that belong to no token")
    return tokens


@dataclass(frozen=True)
class Vocabulary:
    """The symbols of a data set; a token's id is its place in `tokens`.

    Ids 0 to 9 are `SPECIALS` (five named, five reserved), the data set's own tokens follow in sorted order.
    """

    tokens: tuple[str, ...]

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Vocabulary":
        """The vocabulary of a data set, from its tokens in any order and number."""
        return cls(SPECIALS + tuple(sorted(set(tokens))))

    def __post_init__(self) -> None:
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            raise InputError(f"a vocabulary begins with {', '.join(SPECIALS)}; found {self.tokens[:10]}")
        if len(set(self.tokens)) != len(self.tokens):
            raise InputError("a vocabulary holds every token once; found a repeated one")
        object.__setattr__(self, "_ids", {token: k for k, token in enumerate(self.tokens)})

    @property
    def size(self) -> int:
        """K: the number of symbols, special and reserved ones included."""
        return len(self.tokens)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the vocabulary's canonical JSON: what a model and a token file must agree on."""
        return hashlib.sha256(self._json().encode()).hexdigest()

    def encode(self, smiles: str, length: int) -> list[int]:
        """`<bos>`, the string's tokens, `<eos>`, then `<pad>` up to `length` ids.

        Raises InputError if the string is too long, or holds a token that is not in the vocabulary.
        """
        return self._row(tokenize(smiles), length)

    def decode(self, ids: Iterable[int]) -> str:
        """The string of one row of ids, cut at the first `<eos>`, without `<bos>` and `<pad>`.

        Any other special symbol is spelt out (`<mask>`), so that it never passes for a part of a molecule.
        """
        pieces = []
        for token in map(int, ids):
            if token == EOS:
                break
            if token not in (BOS, PAD):
                pieces.append(self.tokens[token])
        return "".join(pieces)

    def save(self, path: str | Path) -> None:
        """Write the vocabulary as JSON."""
        Path(path).write_text(self._json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read a vocabulary that `save` wrote; InputError if the file is missing or holds anything else."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; expected a vocabulary") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: not a vocabulary: {error}") from None
        try:
            return cls(_tokens_of(content))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def _row(self, tokens: list[str], length: int) -> list[int]:
        if len(tokens) > length - 2:
            raise InputError(f"too long ({len(tokens)} tokens, limit {length - 2})")
        unknown = next((token for token in tokens if token not in self._ids), None)
        if unknown is not None:
            raise InputError(f"unknown token {unknown}")
        ids = [BOS, *(self._ids[token] for token in tokens), EOS]
        return ids + [PAD] * (length - len(ids))

    def _json(self) -> str:
        content = {"kind": "smiles", "tokens": self.tokens}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _tokens_of(content):
    """The tokens in the parsed JSON of a vocabulary file."""
    tokens = content.get("tokens") if isinstance(content, dict) else None
    strings = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
    if not strings or content.get("kind") != "smiles":
        raise InputError('not a vocabulary: expected {"kind": "smiles", "tokens": [strings]}')
    return tuple(tokens)


@dataclass(frozen=True)
class Prepared:
    """A data set of molecules, ready for pairing and training.

    `train` (M, N) and `validation` (V, N) are token rows in data order, in the smallest dtype that holds K.
    `smiles` has one line per molecule: `row` (its place in the raw rows, from 0), `smiles` (canonical) and
    `split` (train, validation, or reference: a training row that a smaller `training_rows` left out, known
    all the same when novelty is counted). `rejected` has `row`, `text` (as found) and `reason`.
    """

    train: np.ndarray
    validation: np.ndarray
    vocabulary: Vocabulary
    smiles: pd.DataFrame
    rejected: pd.DataFrame


def read_column(path: str | Path, column: str) -> list[str]:
    """One column of a CSV file with a header line, plain or gzipped, as text; blank lines are no rows.

    Raises InputError for a file that is missing, empty or not readable as CSV, and for an unknown column.
    """
    path = Path(path)
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a readable CSV file: {error}") from None
    if len(rows) < 2:
        raise InputError(f"{path}: empty; expected a header line with {column!r}, and rows below it")
    header = [name.strip() for name in rows[0]]
    if column not in header:
        raise InputError(f"{path}: no column {column!r}; found {', '.join(map(repr, header[:20]))}")
    place = header.index(column)
    return [row[place] if place < len(row) else "" for row in rows[1:]]


def prepare(
    rows: Sequence[str],
    *,
    length: int,
    drop_duplicates: bool = False,
    validation_fraction: float = 0.05,
    validation_rows: Sequence[int] | None = None,
    split_seed: int = 42,
    training_rows: int | None = None,
    max_heavy_atoms: int | None = None,
    max_too_long_share: float = 0.001,
    vocabulary: Vocabulary | None = None,
    progress: bool = True,
) -> Prepared:
    """Turn raw SMILES into token rows of `length` = N, split into training and validation.

    Each row is stripped and canonicalised (RDKit, stereochemistry kept); rows that cannot be used are listed
    with their reason. `validation_rows` (places in `rows`) is a published split; without it the split is
    random: the first `ceil(validation_fraction * total)` of a permutation drawn from `split_seed` are the
    validation set. `training_rows` keeps a random subset of the training set, drawn from the same
    permutation. The vocabulary is that of all molecules of the data set unless one is given.

    Raises InputError if more than `max_too_long_share` of the molecules do not fit `length`, if no molecule
    is left, if `validation_rows` names a row that is not there, and if fewer than `training_rows` are there
    to train on.
    """
    molecules, rejected = _read(rows, max_heavy_atoms, drop_duplicates, progress)
    _check_length([len(tokens) for _, tokens in molecules.values()], length, max_too_long_share)
    if vocabulary is None:
        fitting = (tokens for _, tokens in molecules.values() if len(tokens) <= length - 2)
        vocabulary = Vocabulary.of(token for tokens in fitting for token in tokens)
    ids = {}
    for row, (_, tokens) in molecules.items():
        try:
            ids[row] = vocabulary._row(tokens, length)
        except InputError as reason:
            rejected[row] = str(reason)
    if not ids:
        raise InputError(_nothing_left(rows, rejected))
    if validation_rows is not None:
        _check_rows(validation_rows, len(rows))
    split = split_rows(list(ids), validation_fraction, validation_rows, split_seed, training_rows)
    table = np.array(list(ids.values()), token_dtype(vocabulary.size))
    return Prepared(
        train=table[split == "train"],
        validation=table[split == "validation"],
        vocabulary=vocabulary,
        smiles=pd.DataFrame({"row": list(ids), "smiles": [molecules[row][0] for row in ids], "split": split}),
        rejected=pd.DataFrame(
            [(row, rows[row], rejected[row]) for row in sorted(rejected)], columns=["row", "text", "reason"]
        ),
    )


def _read(rows, max_heavy_atoms, drop_duplicates, progress):
    """The molecules {row: (canonical SMILES, tokens)}, and why the other rows are none {row: reason}."""
    molecules, rejected, first = {}, {}, {}
    bar = tqdm(rows, desc="canonicalise", unit=" rows", mininterval=0.5, disable=not progress)
    with rdBase.BlockLogs():
        for row, text in enumerate(bar):
            try:
                smiles, tokens = _parse(text.strip(), max_heavy_atoms)
            except InputError as reason:
                rejected[row] = str(reason)
                continue
            if drop_duplicates and first.setdefault(smiles, row) != row:
                rejected[row] = f"duplicate of row {first[smiles]}"
            else:
                molecules[row] = smiles, tokens
    return molecules, rejected


def _parse(text, max_heavy_atoms):
    """Canonical SMILES and its tokens; InputError gives the reason against the row."""
    if not text:
        raise InputError("empty")
    molecule = Chem.MolFromSmiles(text)
    if molecule is None:
        raise InputError("unparsable")
    if max_heavy_atoms is not None and molecule.GetNumHeavyAtoms() > max_heavy_atoms:
        raise InputError(f"over {max_heavy_atoms} heavy atoms (left out by the experiment)")
    smiles = Chem.MolToSmiles(molecule)
    return smiles, tokenize(smiles)


def _check_length(counts, length, max_too_long_share):
    """Refuse a length that would cut off more than the stated share of the molecules."""
    overlong = sum(count > length - 2 for count in counts)
    if overlong > max_too_long_share * len(counts):
        raise InputError(
            f"length: {overlong} of {len(counts)} molecules ({overlong / len(counts):.2%}) do not fit "
            f"N = {length}, allowed are {max_too_long_share:.2%}; all fit N = {max(counts) + 2}"
        )


def _nothing_left(rows, rejected):
    if not rejected:
        return "no molecule is left: there are no rows"
    reason, number = Counter(rejected.values()).most_common(1)[0]
    row = next(row for row in sorted(rejected) if rejected[row] == reason)
    return f"no molecule is left of {len(rows)} rows: {number} {reason} (the first: row {row}, {rows[row]!r})"


def _check_rows(validation_rows, total):
    outside = next((row for row in validation_rows if not 0 <= row < total), None)
    if outside is not None:
        raise InputError(f"validation rows: expected 0 to {total - 1} (the data's rows), found {outside}")
