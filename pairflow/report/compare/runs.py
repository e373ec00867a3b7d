"""Finished experiments, which of them have the same data, and what differs between their settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pairflow.report.experiment.contents import REAL

_KEY = ["evaluation", "metric", "reference", "extractor", "method", "nfe"]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished experiment: its name, settings, metric rows and timings, as in `Contents`.

    `provenance` has the date and the commit of its report, `rows` is the hash of its training rows, if they
    are known.
    """

    name: str
    settings: Mapping[str, Any]
    metrics: pd.DataFrame
    timings: pd.DataFrame
    provenance: Mapping[str, Any] = field(default_factory=dict)
    rows: str | None = None

    @property
    def scale(self) -> str:
        return {"paper": "paper’s scale", "reduced": "reduced scale"}[self.settings["scale"]]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Rows of the evaluations' samples with a finite value; for a null a trial is -1, a text empty."""
        rows = self.metrics[self.metrics.evaluation.isin(list(self.settings["evaluations"]))]
        rows = rows[(rows.method != REAL) & np.isfinite(rows.value)].dropna(subset="nfe")
        texts = ["reference", "extractor"]
        rows = rows.astype(dict.fromkeys(texts, "object")).fillna({**dict.fromkeys(texts, ""), "trial": -1})
        return rows.astype({"nfe": int, "trial": int})

    @property
    def seeds(self) -> int:
        """Training seeds that have values."""
        return self.measured.seed.nunique()

    @property
    def repeated(self) -> str:
        """The first value that there are two of, in words; empty where there are none."""
        again = self.measured[self.measured.duplicated([*_KEY, "seed", "trial"])]
        for first in again[[*_KEY, "seed", "trial"]].to_dict("records"):
            return ", ".join(f"{name} {value}" for name, value in first.items() if value not in ("", -1))
        return ""


def same_data(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups of one data set under one set of rules, in the order given."""
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if not apart(group[0], run)), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return groups


def apart(one: Run, other: Run) -> str:
    """Why the numbers of two runs do not compare; empty where they do."""
    ours, theirs = (dict(_flat({"data": run.settings["data"]})) for run in (one, other))
    for key in dict.fromkeys(["data.source", *ours, *theirs]):
        values = [each.get(key, "not set") for each in (ours, theirs)]
        if values[0] != values[1]:
            return f"{key} is {_text(values[1])} in {other.name} and {_text(values[0])} in {one.name}"
    if one.rows and other.rows and one.rows != other.rows:
        return f"the training rows of {other.name} are not those of {one.name}, though their settings are"
    return ""


def differing(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Settings that are not the same everywhere: key -> its value in each run, in words."""
    flat = [dict(_flat(run.settings)) for run in runs]
    keys = dict.fromkeys(key for each in flat for key in each if key != "description")
    texts = {key: [_text(each[key]) if key in each else "–" for each in flat] for key in keys}
    return {key: values for key, values in texts.items() if len(set(values)) > 1}


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
