"""Bounds on the likelihood of held-out rows, from the training logs."""

from pathlib import Path

import pandas as pd

from pairflow.artifacts import as_metrics, read_table, token_array
from pairflow.config import Experiment
from pairflow.plan import paths
from pairflow.report.pages import page_of

_EVALUATION = "likelihood"  # that of the metric rows


def bound_models(root: Path, experiment: Experiment) -> dict[tuple[str, int], Path]:
    """(method, seed) -> the weights, beside which a log ends in the bound on the NLL of the held-out rows.

    The bounds are a function of the training, as the weights are; the log also has times.
    """
    return {
        (method, seed): paths.model(root, seed, method) / "model.safetensors"
        for seed in experiment.seeds
        for method in experiment.methods
    }


def read_bounds(root: Path, experiment: Experiment) -> pd.DataFrame:
    """Metric rows of each model: `nll_bound`, its last validation in nats per token, and those of the kind.

    None where no rows are held out.
    """
    held_out = token_array(read_table(paths.data(root, "validation.parquet"), "tokens")[0]["tokens"])
    convert = page_of(experiment).prepare_bounds(root, held_out)
    rows = []
    for (method, seed), weights in bound_models(root, experiment).items():
        log, _ = read_table(weights.with_name("log.parquet"), "training log")
        measured = log.to_pandas()["validation_nll"].dropna()
        if measured.empty:
            continue
        nll = float(measured.iloc[-1])
        values = {"nll_bound": nll, **convert(nll)}
        rows += [
            {"method": method, "seed": seed, "metric": name, "value": own} for name, own in values.items()
        ]
    shared = {"evaluation": _EVALUATION, "samples": len(held_out), "reference": "test"}
    return as_metrics(pd.DataFrame(rows, columns=["method", "seed", "metric", "value"]), **shared)


def mean_bounds(metrics: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Name of a bound -> method -> its mean over seeds."""
    rows = metrics[metrics["evaluation"] == _EVALUATION]
    return {
        str(name): {
            str(method): float(group["value"].mean()) for method, group in part.groupby("method", sort=False)
        }
        for name, part in rows.groupby("metric")
    }
