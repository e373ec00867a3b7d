"""Scores of the rows of a file: a model's upper bound on -log p."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from pairflow import published
from pairflow.artifacts import (
    Metadata,
    as_cell,
    atomic,
    digest,
    require_apart,
    require_writable,
    write_table,
)
from pairflow.config import ScoreSettings
from pairflow.data.delivery import Candidate
from pairflow.errors import InputError
from pairflow.generate.choice import choose
from pairflow.runtime.progress import bar
from pairflow.training.bound import bound_row
from pairflow.training.model import DiscreteModel


class Scorer:
    """Scores rows, by an upper bound on -log p, with a model or the best model of a finished experiment.

    `folder` contains either. `inputs` are files that the table of scores may not replace: the model's, and
    the user's data file. `noun` names a row, such as "molecule".

        scorer = Scorer("models/pairflow", ScoreSettings(draws=256))
        table = scorer.score(scorer.read(Path("molecules.smi")))
    """

    def __init__(self, folder: str | Path, settings: ScoreSettings, device: str | torch.device = "cpu"):
        folder = published.locate(folder)
        self.settings, self.choice = settings, choose(folder, None, scores=True)
        self.inputs = self.choice.files
        kind, self.model = self.choice.load(device)
        assert kind.scoring  # `choose` refuses other kinds
        self.rows = kind.scoring.reader(self.model)
        self.noun = self.rows.noun

    def read(self, path: Path, column: str | None = None) -> list[Candidate]:
        """Return the rows of a file, each with its tokens, or the reason why it has none.

        `column` names the column of a table; by default it is found. Raises InputError if the file cannot be
        read, or if none of its rows can be scored.
        """
        rows = list(self.rows.read(path, column))
        if all(row.tokens is None for row in rows):
            first = f": {rows[0].reason} (the first of {len(rows):,})" if rows else ": the file has none"
            raise InputError(f"{path}: no {self.noun} can be scored{first}")
        return rows

    def score(self, rows: list[Candidate], quiet: bool = True) -> pd.DataFrame:
        """Return a table of the bounds on -log p, with a line for each of `rows`, in order.

        The columns are the row's line, name and text, then what `score_row` gives. A row that cannot be
        scored has a `reason` in place of numbers. `quiet` hides the progress bar.
        """
        padding = self.rows.padding
        with bar(rows, total=len(rows), unit=f" {self.noun}s", quiet=quiet) as candidates:
            lines = [
                {"line": row.number, "name": row.name, self.rows.column: row.text}
                | ({} if row.tokens is None else score_row(self.model, row.tokens, self.settings, padding))
                | {"reason": row.reason}
                for row in candidates
            ]
        measured = ["nll_bound", "standard_error", "low", "high", "nll_per_token"]
        columns = ["line", "name", self.rows.column, "tokens", *measured, "reason"]
        return pd.DataFrame(lines, columns=columns).astype({"tokens": "Int64"})

    def subtract(self, table: pd.DataFrame, rows: list[Candidate], quiet: bool = True) -> pd.DataFrame:
        """Add the column `nll_difference` to another model's `table` of scores, and return the table.

        The difference is the other model's `nll_bound` minus the bound of this model. `rows` are the same
        rows, read for this model; InputError if they are other ones.
        """
        if [row.text for row in rows] != list(table[self.rows.column]):
            raise InputError(
                f"--against: this model splits the file into {len(rows):,} rows, --model into {len(table):,}"
            )
        scores = self.score(rows, quiet)
        table.insert(table.columns.get_loc("reason"), "nll_difference", table.nll_bound - scores.nll_bound)
        return table

    def require_like(self, other: "Scorer") -> None:
        """Raise InputError unless both models write rows alike (noun, notation), so that bounds compare."""
        ours, theirs = ((judge.noun, judge.rows.notation) for judge in (self, other))
        if ours != theirs:
            given, expected = (
                f"{noun}s{f' as {notation}' * bool(notation)}" for noun, notation in (theirs, ours)
            )
            raise InputError(f"--against: expected a model of {expected}, like --model; found {given}")


def score_row(
    model: DiscreteModel, row: np.ndarray, settings: ScoreSettings, padding: int | None = None
) -> dict[str, float]:
    """Return the bound on -log p of a row (N,) in nats, as a dict of numbers.

    `tokens` is the number of tokens, `nll_bound` the bound, `standard_error` its error, `low` and `high` the
    ends of its 95 % interval, and `nll_per_token` the bound per token. Positions with the symbol `padding`,
    if any, do not count as tokens. Raises InputError if the network gives no finite numbers.
    """
    ignored = model.training is not None and model.training.ignore_padding
    bound = bound_row(
        model.network,
        model.corruption,
        model.prediction,
        row,
        draws=settings.draws,
        seed=settings.seed,
        padding=padding if ignored else None,
        device=model.device,
    )
    if not np.isfinite(bound.value):
        raise InputError(f"{model.folder}: the network gives no finite numbers: its training diverged")
    number = len(row) if padding is None else int(np.count_nonzero(row != padding))
    low, high = bound.interval
    values = {"nll_bound": bound.value, "standard_error": bound.error, "low": low, "high": high}
    return {"tokens": number, **values, "nll_per_token": bound.value / number}


def write_scores(
    scorer: Scorer,
    rows: Path,
    out: Path,
    column: str | None = None,
    quiet: bool = False,
    against: Scorer | None = None,
) -> str:
    """Score the rows in the file `rows`, write the table to `out` (.csv or .parquet), and return a summary.

    With `against`, a further column has the difference to the bound of that model. Raises InputError if the
    rows cannot be scored, `out` cannot be written, or the two models do not write rows in the same way.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out}: unknown suffix {out.suffix!r}; expected .csv or .parquet")
    judges = [scorer, against] if against else [scorer]
    require_apart({"--out": out}, [rows, *(path for judge in judges for path in judge.inputs)])
    require_writable(out)
    if against:
        scorer.require_like(against)
    table = scorer.score(scorer.read(rows, column), quiet)
    inputs = {"model": str(scorer.model.weights), "rows": digest(rows)}
    if against:
        table = against.subtract(table, against.read(rows, column), quiet)
        inputs["against"] = str(against.model.weights)
    metadata = Metadata(
        kind="scores",
        vocabulary=scorer.model.vocabulary,
        parameters={"method": scorer.model.method, **scorer.settings.model_dump(mode="json")},
        inputs=inputs,
    )
    with atomic(out) as [temporary]:
        if out.suffix == ".parquet":
            write_table(temporary, table, metadata)
        else:
            table.map(as_cell).to_csv(temporary, index=False, float_format="%.4f", lineterminator="\n")
    return f"{_summary(table, scorer.noun)}{scorer.rows.remark}, seed {scorer.settings.seed} -> {out}"


def _summary(table: pd.DataFrame, noun: str) -> str:
    """Return a sentence on the scores in `table`, and on why rows have none; `noun` names a row."""
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
