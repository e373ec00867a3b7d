"""Which model to sample from, and in how many steps: as a user says, or by the metrics of an experiment."""

from pathlib import Path
from typing import NamedTuple

from pairflow.artifacts import read_table
from pairflow.errors import InputError
from pairflow.plan import paths

CLOSE = 0.01  # shares of valid samples that differ by no more count as equal


class ModelChoice(NamedTuple):
    """The folder of a model, a number of sampling steps, and a sentence on why, if metrics chose them."""

    folder: Path
    nfe: int
    reason: str = ""


def choose(folder: Path, nfe: int | None) -> ModelChoice:
    """The model in `folder`, or the best one of the finished experiment in `folder`.

    Of an experiment: the method and number of steps with the highest share of valid samples; where several
    are within one percentage point of it, the one with the fewest steps. With `nfe`, the best method at that
    number of steps, if the experiment was evaluated there. Raises InputError for a model without `nfe`, and
    for an experiment without a metric `valid`.
    """
    metrics = folder / "metrics.parquet"
    if (folder / "model.json").is_file() or not metrics.is_file():
        if nfe is None:
            raise InputError(f"{folder}: a model does not say how many steps to take; add --nfe")
        return ModelChoice(folder, nfe)
    rows = read_table(metrics, "metrics")[0].to_pandas()
    rows = rows[(rows.metric == "valid") & rows.nfe.notna()]
    if rows.empty:
        raise InputError(f"{metrics}: no metric 'valid' to choose a model by; name the folder of a model")
    shares = (rows.value / rows.samples).groupby([rows.method, rows.nfe]).mean().rename("share").reset_index()
    at_nfe = shares[shares.nfe == nfe]
    compared = shares if at_nfe.empty else at_nfe
    close = compared[compared.share >= compared.share.max() - CLOSE]
    best = close.sort_values(["nfe", "share"], ascending=[True, False]).iloc[0]
    steps = nfe or int(best.nfe)
    share = f"{best.share:.1%} of its samples are valid at NFE {best.nfe:.0f}"
    reason = f"{folder}: takes {best.method} with --nfe {steps}; by the metrics {share}"
    return ModelChoice(paths.model(folder, int(rows.seed.min()), best.method), steps, reason)
