"""Turns text into token rows: normalises it, cuts it into three parts, tokenises these, and cuts rows."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from pairflow.artifacts import token_dtype
from pairflow.data.prepared import parent_digest, write_prepared
from pairflow.data.split import split_rows
from pairflow.errors import InputError
from pairflow.files import split_lines
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.tokenisers import BERT, Characters, Tokeniser, WordPieces, load_tokeniser

PARTS = ("train", "validation", "judge")  # in the order of the text
Parts = Mapping[str, Iterable[str]]
"""The texts of each of PARTS: single lines if rows are lines, otherwise running texts."""

_NO_LETTERS = re.compile("[^a-z]+")
_SHOWN = 200  # characters of a rejected piece that are stored
_NAMED = 5  # characters that a note names


class Rejected(NamedTuple):
    """A piece of text that was left out: where it was found, its text, and why it was left out."""

    place: str
    text: str
    reason: str


@dataclass(frozen=True)
class PreparedText:
    """Token rows for pairing and training, in the order of the text.

    Rows of `train` (M, N) overlap if `stride` is below N; rows of `validation` (V, N) and `judge` (J, N) do
    not. `rejected` lists the pieces that were left out, with the columns `place`, `text` and `reason`.
    `notes` are sentences for the user.
    """

    train: np.ndarray
    validation: np.ndarray
    judge: np.ndarray
    tokeniser: Tokeniser
    rejected: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def symbols(self) -> int:
        return self.tokeniser.size


def prepare(
    parts: Parts, settings: Text, rejected: Sequence[Rejected] = (), parent: Tokeniser | None = None
) -> PreparedText:
    """Turn the parts of a text (train, validation, judge) into token rows; `rejected` are pieces that could
    not be read.

    Characters are collected from all parts. If the tokeniser of a `parent` model is given, it is used, and
    pieces with unknown symbols are rejected. Raises InputError if a part gives no row, and for fewer rows
    than `training_rows`.
    """
    texts = {name: list(parts[name]) for name in PARTS} if settings.tokeniser != "bert" else parts
    tokeniser = _choose_tokeniser(texts, settings, parent)
    cut = _lines if settings.rows == "lines" else _packed
    rows, reasons = {}, list(rejected)
    for name in PARTS:
        rows[name] = cut(name, texts[name], tokeniser, settings, reasons)
        if not len(rows[name]):
            unit = "line" if settings.rows == "lines" else f"piece of {settings.length} tokens"
            problem = f"too little text: its part for {name} has no {unit}"
            unusable = [piece for piece in reasons[len(rejected) :] if piece.place.endswith(f" of {name}")]
            if unusable:
                problem = f"no row is left for {name}: {summarise(pd.DataFrame(unusable))}"
            raise InputError(f"{settings.source}: {problem}")
    chosen = split_rows(range(len(rows["train"])), 0, settings.split_seed, settings.training_rows)
    rows["train"] = rows["train"][chosen == "train"]
    table = pd.DataFrame(reasons, columns=Rejected._fields)
    table = table.assign(text=table.text.str[:_SHOWN])
    notes = tuple(_remark_invisible(texts, tokeniser)) if isinstance(tokeniser, Characters) else ()
    return PreparedText(**rows, tokeniser=tokeniser, rejected=table, notes=notes)


def _remark_invisible(parts: Parts, tokeniser: Tokeniser) -> Iterator[str]:
    """Yield a sentence that counts control characters and the like in the text, and U+FFFD, which stands
    for lost ones; nothing if there are none."""
    invisible = [
        symbol
        for symbol in tokeniser.tokens
        if len(symbol) == 1 and (category(symbol)[0] == "C" or symbol == "\ufffd") and symbol not in "\t\n"
    ]
    counts = {
        f"U+{ord(symbol):04X}": sum(text.count(symbol) for texts in parts.values() for text in texts)
        for symbol in invisible
    }
    if counts:
        named = [f"{name} ({count:,} times)" for name, count in counts.items()]
        more = ", ..." * (len(named) > _NAMED)
        yield f"Invisible or lost characters of the text are symbols: {', '.join(named[:_NAMED])}{more}."


def normalise(text: str, settings: Text) -> str:
    """Return the text as it is; with `letters` lower-case, each run of other characters as one space."""
    return _NO_LETTERS.sub(" ", text.lower()).strip() if settings.normalisation == "letters" else text


def cut_parts(text: str | Sequence[str], settings: Text) -> dict[str, list[str]]:
    """Normalise a text, or its rows, and cut it into parts for training, validation and the judge, in this
    order.

    Packed text is cut between characters, and each part is a list of one text; else it is a list of rows. The
    sizes of the judge's part, and of the last two parts together, are rounded up.
    """
    packed = settings.rows == "packed"
    rows = [] if packed else split_lines(text) if isinstance(text, str) else text
    units: Any = normalise(str(text), settings) if packed else [normalise(row, settings) for row in rows]
    # As a Fraction 0.05 is exact. As a float it is slightly larger, and would be rounded up to one unit more.
    shares = [Fraction(str(share)) for share in (settings.validation_fraction, settings.judge_fraction)]
    held_out, judge = (ceil(share * len(units)) for share in (sum(shares), shares[1]))
    ends = [0, len(units) - held_out, len(units) - judge, len(units)]
    parts = [units[max(0, first) : max(0, last)] for first, last in pairwise(ends)]
    return {name: [part] if packed else part for name, part in zip(PARTS, parts, strict=True)}


def _choose_tokeniser(parts: Parts, settings: Text, parent: Tokeniser | None) -> Tokeniser:
    """Return the parent's tokeniser; InputError if it does not fit the settings. Without a parent, return one
    of the text's characters or of BERT's word pieces, as the settings say."""
    lines = settings.rows == "lines"
    if parent and (parent.kind, parent.lines) != (settings.tokeniser, lines):
        rows = "lines" if parent.lines else "packed"
        raise InputError(
            f"tokeniser: {settings.tokeniser}, rows: {settings.rows}; but the parent has {parent.kind}, "
            f"rows: {rows}"
        )
    if parent:
        return parent
    if settings.tokeniser == "characters":
        return Characters.from_texts((text for texts in parts.values() for text in texts), lines)
    return WordPieces.read(BERT.fetch(), lines)


def _packed(
    name: str, texts: Iterable[str], tokeniser: Tokeniser, settings: Text, rejected: list[Rejected]
) -> np.ndarray:
    """Join the texts of the part `name` and cut them into rows (M, N), without an incomplete last one.
    Training rows may overlap, by the setting `stride`. Rows with unknown symbols are left out, and added
    to `rejected`."""
    tokens, width = tokeniser.encode_all(texts), settings.length - tokeniser.margins
    if len(tokens) < width:
        return np.empty((0, settings.length), tokens.dtype)
    stride = (settings.stride if name == "train" else None) or width
    rows = sliding_window_view(tokens, width)[::stride]
    known = np.ones(len(rows), bool) if tokeniser.unknown is None else (rows != tokeniser.unknown).all(1)
    for row in np.flatnonzero(~known):
        location = f"piece {row + 1} of {name}"
        rejected.append(Rejected(location, tokeniser.decode(rows[row]), "unknown symbol"))
    return tokeniser.frame(rows[known])


def _lines(
    name: str, texts: Iterable[str], tokeniser: Tokeniser, settings: Text, rejected: list[Rejected]
) -> np.ndarray:
    """Make rows (M, N) of the lines `texts` of the part `name`. Empty lines, too long ones and those with
    unknown symbols are left out, and added to `rejected`."""
    rows = [np.empty((0, settings.length), token_dtype(tokeniser.size))]
    for number, text in enumerate(texts, 1):
        try:
            if not text.strip():
                raise InputError("empty")
            rows.append(tokeniser.line(tokeniser.encode_known(text), settings.length)[None])
        except InputError as reason:
            rejected.append(Rejected(f"row {number} of {name}", text, str(reason)))
    return np.concatenate(rows)


def summarise(rejected: pd.DataFrame) -> str:
    """Return a line about the pieces that were left out, a table with the columns place, text and reason:
    how many for each reason, with an example."""
    # Reasons end in brackets with numbers that differ from piece to piece.
    reasons = rejected.reason.str.partition(" (")[0]
    parts = [
        f"{len(group):,} {reason} (the first: {group.place.iloc[0]}, {group.text.iloc[0][:40]!r})"
        for reason, group in rejected.groupby(reasons, sort=False)
    ]
    pieces = "1 piece was" if len(rejected) == 1 else f"{len(rejected):,} pieces were"
    return f"{pieces} left out: {'; '.join(parts)}"


def store(source: Any, settings: Text, files: Mapping[str, Path], parent: Path | None) -> None:
    """Read a source of text, and write its token rows, its tokeniser, and the pieces that were left out
    into `files` (paths by name without suffix). `parent` is the vocabulary.json of the model to start
    from."""
    prepared = source.read(settings, load_tokeniser(parent) if parent else None)
    if len(prepared.rejected):
        print(f"pairflow preprocess: note: {summarise(prepared.rejected)}", file=sys.stderr)
    for note in prepared.notes:
        print(f"pairflow preprocess: note: {note}", file=sys.stderr)
    tokeniser = prepared.tokeniser
    write_prepared(
        files,
        {split: getattr(prepared, split) for split in PARTS},
        tokeniser.to_json(),
        tokeniser.size,
        settings.model_dump(mode="json"),
        {"source": source.digest(), **parent_digest(parent)},
        tables={"rejected": (prepared.rejected, "rejected rows")},
        padding=tokeniser.padding,
        mask=tokeniser.mask,
    )
