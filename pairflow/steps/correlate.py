"""Measures how much the positions of samples from the same source (noise row) depend on each other."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, digest, read_table, token_array
from pairflow.config import CorrelateSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime.resume import BlockKey, ResumableTable, split_rows
from pairflow.steps.command import step
from pairflow.steps.options import existing, on_device, out, resumable

CEILING_GROUPS = 20_000  # the ceiling uses at most this many groups of training rows


@step(CorrelateSettings)
@existing("--model", help="Folder of the model.")
@existing("--tokens", help="Training token rows (Parquet), for the ceiling.")
@out("--out", help="Output file for the metric rows (Parquet): total_correlation, its error, its ceiling.")
@resumable
@on_device
def main(settings: CorrelateSettings, model: Path, tokens: Path, out: Path, resume, device, threads, quiet):
    """Measure how strongly the positions of samples from the same source state depend on each other: the
    total correlation, in bits, from plug-in entropies.

    The ceiling is the same estimate for independent draws from the training rows. There are as many groups of
    draws as source states, but at most 20,000. An interrupted run resumes, and gives the
    same bytes.
    """
    from pairflow.metrics.correlation import data_total_correlation, describe
    from pairflow.runtime.device import choose
    from pairflow.training.model import Model

    provenance = Provenance()
    table, metadata = read_table(tokens, "tokens")
    device = choose(device, threads, provenance)
    denoiser = Model.load(model, device=device)
    _require_fit(denoiser, metadata, tokens)
    groups = min(settings.sources, CEILING_GROUPS)
    ceiling = data_total_correlation(token_array(table["tokens"]), settings.samples, groups, settings.seed)
    written = Metadata(
        kind="metrics",
        vocabulary=denoiser.vocabulary,
        parameters={"method": denoiser.method, **settings.model_dump(mode="json")},
        inputs={"model": str(denoiser.weights), "tokens": digest(tokens)},
    )
    result = ResumableTable(out, written, denoiser.method, resume, provenance, device)
    values = _measure(denoiser, settings, result, quiet)
    result.write(_rows(denoiser.method, settings, describe(values, ceiling), groups))


def _require_fit(model, metadata: Metadata, tokens: Path) -> None:
    """Raise InputError unless the model has uniform noise, and `tokens` has training rows of its data set."""
    if parse_method(model.method).corruption != "uniform":
        raise InputError(
            f"{model.folder}: {model.method} always starts from the same source state (all masks), "
            f"so this correlation cannot be measured"
        )
    metadata.require_same_vocabulary(model.vocabulary, tokens, model.folder)
    metadata.require_same_data(model.data, tokens, model.folder)
    metadata.require_split("train", tokens)
    expected, actual = (model.length, model.vocabulary_size), (metadata.length, metadata.vocabulary_size)
    if actual != expected:
        raise InputError(
            f"{tokens}: expected row length and vocabulary size (N, K) = {expected} as "
            f"in {model.folder}, found {actual}"
        )


def _measure(model, settings: CorrelateSettings, table: ResumableTable, quiet: bool) -> np.ndarray:
    """Return the total correlation (S,), in bits, of `settings.samples` samples from each of S source states,
    drawn from `model`. `table` saves finished blocks."""
    from pairflow.metrics.correlation import total_correlation
    from pairflow.runtime.progress import network_bar

    def measure(block: BlockKey) -> np.ndarray:
        first, sources = block
        repeats, plan = settings.samples, model.plan(settings, settings.steps, sources)
        _, samples = model.draw(plan, sources, settings.seed, "correlation", first, repeats=repeats)
        return total_correlation(samples.view(sources, repeats, -1).numpy())

    batches = split_rows(settings.sources, max(1, model.batch_rows // settings.samples))
    bar = partial(network_bar, model.network, settings.samples * (settings.steps + 1), quiet)
    return np.concatenate(table.make(batches, measure, bar))


def _rows(method: str, settings: CorrelateSettings, values: dict[str, float], groups: int) -> pd.DataFrame:
    rows = pd.DataFrame({"metric": values.keys(), "value": values.values()})
    of_data = rows["metric"] == "total_correlation_ceiling"
    rows["samples"] = np.where(of_data, groups, settings.sources) * settings.samples
    rows["reference"] = [("train" if row else None) for row in of_data]
    return as_metrics(rows, method=method, nfe=settings.steps, seed=settings.seed, evaluation="correlation")


if __name__ == "__main__":
    main()
