"""Scores of molecules and texts: the bound on -log p that a model gives to each row of a file."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from pairflow import published
from pairflow.artifacts import Metadata, as_cell, atomic, digest, require_apart, write_table
from pairflow.config import ScoreSettings
from pairflow.errors import InputError
from pairflow.files import read_text
from pairflow.generate.bound import bound_row
from pairflow.generate.choice import choose_for_scores, makes_text
from pairflow.generate.demand import require_writable
from pairflow.kinds.text.sources import MOST_BYTES
from pairflow.kinds.text.tokenisers import load_tokeniser
from pairflow.runtime.progress import bar
from pairflow.training.model import Model


class Candidate(NamedTuple):
    """A row of a file: its number there, its name, its text, and its tokens (N,) or why it has none."""

    number: int
    name: str
    text: str
    tokens: np.ndarray | None
    reason: str = ""


class Scorer:
    """The model in `folder`, or the best one of the finished experiment there, as a judge of rows.

    `inputs` are the files that are read; `noun` is what a row is.

        scorer = Scorer("models/pairflow", ScoreSettings(draws=256))
        table = scorer.score(scorer.read(Path("molecules.smi")))
    """

    def __init__(self, folder: str | Path, settings: ScoreSettings, device: str | torch.device = "cpu"):
        folder = published.locate(folder)
        self.settings, self.text = settings, makes_text(folder)
        self.noun = "text" if self.text else "molecule"
        self.choice = choose_for_scores(folder)
        self.inputs = self.choice.files
        self.model = Model.load(self.choice.folder, device=device)
        if self.model.shape or not self.model.vocabulary:
            rows = "images" if self.model.shape else "token rows"
            raise InputError(f"{folder}: scores are for molecules and text; this makes {rows}")
        vocabulary = self.model.vocabulary_file()
        self.padding: int | None
        if self.text:
            self.tokeniser = load_tokeniser(vocabulary)
            self.padding = self.tokeniser.padding
        else:
            from pairflow.kinds.molecules.prepare import PAD, Vocabulary

            self.vocabulary, self.padding = Vocabulary.load(vocabulary), PAD

    def read(self, path: Path, column: str = "smiles") -> list[Candidate]:
        """The rows of a file; InputError if it cannot be read or no row of it can be scored."""
        rows = list(self._texts(path) if self.text else self._molecules(path, column))
        if all(row.tokens is None for row in rows):
            first = f": {rows[0].reason} (the first of {len(rows):,})" if rows else ": the file has none"
            raise InputError(f"{path}: no {self.noun} can be scored{first}")
        return rows

    def score(self, rows: list[Candidate], quiet: bool = True) -> pd.DataFrame:
        """A line for each row, in their order, of which those without tokens have only a reason."""
        with bar(rows, total=len(rows), unit=f" {self.noun}s", quiet=quiet) as candidates:
            lines = [
                {"line": row.number, "name": row.name, self._column: row.text}
                | ({} if row.tokens is None else self._measure(row.tokens))
                | {"reason": row.reason}
                for row in candidates
            ]
        measured = ["nll_bound", "standard_error", "low", "high", "nll_per_token"]
        columns = ["line", "name", self._column, "tokens", *measured, "reason"]
        return pd.DataFrame(lines, columns=columns).astype({"tokens": "Int64"})

    @property
    def _column(self) -> str:
        return "text" if self.text else "smiles"

    def _measure(self, tokens: np.ndarray) -> dict[str, float]:
        model, settings = self.model, self.settings
        ignored = model.training is not None and model.training.ignore_padding
        bound = bound_row(
            model.network,
            model.corruption,
            model.prediction,
            tokens,
            draws=settings.draws,
            seed=settings.seed,
            padding=self.padding if ignored else None,
            device=model.device,
        )
        if not np.isfinite(bound.value):
            raise InputError(
                f"{self.choice.folder}: the network gives no finite numbers: its training diverged"
            )
        number = len(tokens) if self.padding is None else int(np.count_nonzero(tokens != self.padding))
        low, high = bound.interval
        values = {"nll_bound": bound.value, "standard_error": bound.error, "low": low, "high": high}
        return {"tokens": number, **values, "nll_per_token": bound.value / number}

    def _molecules(self, path: Path, column: str) -> Iterator[Candidate]:
        from rdkit import rdBase

        from pairflow.kinds.molecules import prepare as molecules
        from pairflow.kinds.molecules.library import Unreadable, numbered_rows

        with rdBase.BlockLogs():
            for number, raw, name in numbered_rows(path, column):
                text = raw.text if isinstance(raw, Unreadable) else raw
                try:
                    molecule = molecules.read_molecule(raw)
                    _, text = molecules.canonicalise(molecule, molecules.ONLY_CANONICAL)
                    tokens = np.array(self.vocabulary.encode(text, self.model.length))
                except InputError as reason:
                    yield Candidate(number, name, text, None, str(reason))
                    continue
                yield Candidate(number, name, text, tokens)

    def _texts(self, path: Path) -> Iterator[Candidate]:
        """The lines of a file, or pieces of N tokens of its text, whichever the model's rows are."""
        tokeniser, length, text = self.tokeniser, self.model.length, _read_text(path)
        if not tokeniser.lines:
            width = length - tokeniser.margins
            tokens = tokeniser.encode_all([text])
            pieces = tokeniser.frame(tokens[: len(tokens) // width * width].reshape(-1, width))
            for number, row in enumerate(pieces, 1):
                unknown = tokeniser.unknown is not None and tokeniser.unknown in row
                reason = "unknown symbol" if unknown else ""
                yield Candidate(number, "", tokeniser.decode(row), None if unknown else row, reason)
            return
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row = tokeniser.line(tokeniser.encode(line), length)
                if tokeniser.unknown is not None and tokeniser.unknown in row:
                    raise InputError("unknown symbol")
            except InputError as reason:
                yield Candidate(number, "", line, None, str(reason))
                continue
            yield Candidate(number, "", line, row)


def write_scores(scorer: Scorer, rows: Path, out: Path, column: str = "smiles", quiet: bool = False) -> str:
    """Score the rows of a file, write the table to `out` (.csv or .parquet), and sum it up in a sentence."""
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .csv or .parquet")
    require_apart({"--out": out}, [rows, *scorer.inputs])
    require_writable(out)
    table = scorer.score(scorer.read(rows, column), quiet)
    metadata = Metadata(
        kind="scores",
        vocabulary=scorer.model.vocabulary,
        parameters={"method": scorer.model.method, **scorer.settings.model_dump(mode="json")},
        inputs={"model": str(scorer.model.weights), "rows": digest(rows)},
    )
    with atomic(out) as [temporary]:
        if out.suffix == ".parquet":
            write_table(temporary, table, metadata)
        else:
            table.map(as_cell).to_csv(temporary, index=False, float_format="%.4f", lineterminator="\n")
    return f"{_summary(table, scorer.noun)}, seed {scorer.settings.seed} -> {out}"


def _summary(table: pd.DataFrame, noun: str) -> str:
    """How many rows have a score and which, and why the others have none."""
    scored, reasons = table.dropna(subset="nll_bound"), Counter(table.reason[table.reason != ""])
    text = (
        f"{len(scored):,} {noun}s: -log p is at most {scored.nll_bound.mean():.2f} nats on average "
        f"({scored.nll_bound.sum() / scored.tokens.sum():.3f} per token), 95 % interval of one "
        f"± {(scored.high - scored.nll_bound).median():.2g} (median)"
    )
    if reasons:
        named = ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common(3))
        text += f"; {reasons.total():,} rows have no score ({named}{', ...' * (len(reasons) > 3)})"
    return text


def _read_text(path: Path) -> str:
    """A text file; InputError if it is no UTF-8 text."""
    if path.suffix != ".txt":
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; expected .txt for a model of text")
    return read_text(path, MOST_BYTES)
