"""Bounds on the likelihood of held-out rows, from the training logs."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import as_metrics, read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds.text.ngrams import mark_padding
from pairflow.kinds.text.tokenisers import load_tokeniser
from pairflow.plan import paths

BOUNDED = ("molecules", "text", "tokens")  # modalities whose page has the bounds


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
    """Metric rows of each model: `nll_bound`, its last validation in nats per token, and for text others.

    None where no rows are held out.
    """
    held_out = token_array(read_table(paths.data(root, "validation.parquet"), "tokens")[0]["tokens"])
    density = _tokens_per_character(root, held_out) if experiment.modality == "text" else None
    rows = []
    for (method, seed), weights in bound_models(root, experiment).items():
        log, _ = read_table(weights.with_name("log.parquet"), "training log")
        measured = log.to_pandas()["validation_nll"].dropna()
        if measured.empty:
            continue
        nll = float(measured.iloc[-1])
        values = {"nll_bound": nll}
        if density is not None:
            values |= {"ppl_bound": np.exp(nll), "bpc_bound": nll / np.log(2) * density}
        rows += [
            {"method": method, "seed": seed, "metric": name, "value": own} for name, own in values.items()
        ]
    shared = {"evaluation": "likelihood", "samples": len(held_out), "reference": "test"}
    return as_metrics(pd.DataFrame(rows, columns=["method", "seed", "metric", "value"]), **shared)


def mean_bounds(metrics: pd.DataFrame, name: str = "nll_bound") -> dict[str, float]:
    """Method -> the mean over seeds of one of its bounds."""
    rows = metrics[metrics["metric"] == name]
    return {str(method): float(group["value"].mean()) for method, group in rows.groupby("method", sort=False)}


def _tokens_per_character(root: Path, rows: np.ndarray) -> float:
    """Of rows (V, N) of text, without padding."""
    tokeniser = load_tokeniser(paths.data(root, "vocabulary.json"))
    tokens = np.count_nonzero(mark_padding(rows, tokeniser.padding) >= 0)
    return tokens / max(sum(len(tokeniser.decode(row)) for row in rows), 1)
