"""What the page shows of a user's own token rows: bounds on the likelihood, some rows, and the headline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import as_metrics, read_table, token_array
from pairflow.config import Experiment
from pairflow.plan import paths

SHOWN = 8  # rows of a method at a number of steps
_LONGEST = 400  # tokens of a row that are shown
Rows = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> (B, N)


def bound_logs(root: Path, experiment: Experiment) -> dict[tuple[str, int], Path]:
    """(method, seed) -> the training log, which ends in the bound on the NLL of the held-out rows."""
    return {
        (method, seed): paths.model(root, seed, method) / "log.parquet"
        for seed in experiment.seeds
        for method in experiment.methods
    }


def read_bounds(root: Path, experiment: Experiment) -> pd.DataFrame:
    """A metric row `nll_bound` for each model: its last validation, in nats per token."""
    held_out = len(read_table(paths.data(root, "validation.parquet"), "tokens")[0])
    rows = []
    for (method, seed), path in bound_logs(root, experiment).items():
        measured = read_table(path, "training log")[0].to_pandas()["validation_nll"].dropna()
        rows.append({"method": method, "seed": seed, "value": float(measured.iloc[-1])})
    shared = {"metric": "nll_bound", "evaluation": "likelihood", "samples": held_out, "reference": "test"}
    return as_metrics(pd.DataFrame(rows), **shared)


def read_rows(root: Path, _: Experiment, samples: Rows) -> dict[str, Any]:
    """The fields of `Contents` that only token rows have: samples, and training rows under `data`."""
    train = token_array(read_table(paths.data(root, "train.parquet"), "tokens")[0]["tokens"])[:SHOWN]
    return {"rows": {"data": [_text(row) for row in train]} | _texts(samples)}


def _texts(samples: Rows) -> dict[str, list[str]]:
    """`udlm at 4 steps` -> its first rows."""
    named = {
        f"{method}, NFE {nfe}": tokens
        for method, by_nfe in samples.items()
        for nfe, tokens in sorted(by_nfe.items())
    }
    return {name: [_text(row) for row in tokens[:SHOWN]] for name, tokens in named.items()}


def _text(row: np.ndarray) -> str:
    return " ".join(map(str, row[:_LONGEST])) + " …" * (len(row) > _LONGEST)
