"""A model to metric rows: how much the positions of its samples depend on one another, given the source."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import (
    Metadata,
    Provenance,
    as_metrics,
    atomic,
    digest,
    read_table,
    token_array,
    write_table,
)
from pairflow.config import CorrelateSettings, parse_method
from pairflow.errors import InputError
from pairflow.runtime.resume import Blocks, folder_of, remove
from pairflow.steps.command import device, existing, out, quiet, resumable, step, threads

CEILING_GROUPS = 20_000  # at most


@step(CorrelateSettings)
@existing("--model", help="Folder with model.safetensors and model.json.")
@existing("--tokens", help="Training rows, Parquet: for the ceiling.")
@out("--out", help="Metric rows, Parquet: total_correlation, its standard error and its ceiling.")
@resumable
@device
@threads
@quiet
def main(
    settings: CorrelateSettings,
    model: Path,
    tokens: Path,
    out: Path,
    resume,
    save_every,
    device,
    threads,
    quiet,
):
    """Measure the total correlation of samples given their source state, in bits, by plug-in entropies.

    The ceiling is the same estimate for independent draws from the training rows, in as many groups as there
    are source states, 20,000 at most. Stopped, it goes on where it was, to the same bits.
    """
    import torch

    from pairflow.metrics.correlation import data_total_correlation, describe, total_correlation
    from pairflow.runtime.device import choose
    from pairflow.runtime.progress import bar_of
    from pairflow.training import model as checkpoint

    provenance = Provenance()
    table, metadata = read_table(tokens, "tokens")
    where = choose(device, threads)
    provenance.device = str(where)
    network, facts = checkpoint.load(model, device=where)
    _require_fit(facts, model, metadata, tokens)
    groups = min(settings.sources, CEILING_GROUPS)
    of_data = data_total_correlation(token_array(table["tokens"]), settings.samples, groups, settings.seed)
    at_once = checkpoint.corruption_of(facts).rows_at_once(facts["length"])
    at_most = max(1, at_once // settings.samples)
    made = Metadata(
        kind="metrics",
        vocabulary=facts["vocabulary"],
        parameters={"method": facts["method"], **settings.model_dump(mode="json")},
        inputs={"model": facts["weights"], "tokens": digest(tokens)},
    )
    resume = resume or out.parent / f".{out.name}.resume"
    run = {**made.__dict__, "device": where.type, "torch": torch.__version__}
    states = folder_of(resume, facts["method"], run)
    batches = [
        (first, min(at_most, settings.sources - first)) for first in range(0, settings.sources, at_most)
    ]

    def batch(block: tuple[int, int]) -> np.ndarray:
        return total_correlation(_draw(network, facts, settings, *block, where))

    blocks = Blocks(batches, states, save_every, provenance)
    left = sum(sources for _, sources in blocks.left)
    with bar_of(network, left * settings.samples, settings.steps + 1, quiet):
        found = np.concatenate(blocks.make(batch))
    frame = _rows(facts["method"], settings, describe(found, of_data), groups)
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    provenance.write(out)
    remove(states)


def _require_fit(facts, model: Path, metadata: Metadata, tokens: Path) -> None:
    """InputError unless the model has many source states, and its samples are rows like the tokens."""
    if parse_method(facts["method"]).corruption != "uniform":
        raise InputError(
            f"{model}: {facts['method']} has a single source state, all masks: nothing to condition on"
        )
    metadata.require_same_vocabulary(facts["vocabulary"], tokens, model)
    metadata.require_same_data(facts.get("data"), tokens, model)
    metadata.require_split("train", tokens)
    expected, found = (facts["length"], facts["vocabulary_size"]), (metadata.length, metadata.vocabulary_size)
    if found != expected:
        raise InputError(f"{tokens}: expected (N, K) = {expected} as in {model}, found {found}")


def _draw(network, facts, settings: CorrelateSettings, first: int, sources: int, where) -> np.ndarray:
    """One batch of samples (S, R, N) by (seed, first): every method starts from the same source states."""
    import torch

    from pairflow import rng
    from pairflow.training.model import corruption_of

    generator = torch.Generator(where).manual_seed(rng.stream_seed(settings.seed, "correlation", first))
    corruption = corruption_of(facts)
    x0 = corruption.source((sources, facts["length"]), generator, where)
    update = settings.model_dump(include={"sampler", "steps", "conversion"})
    x0 = x0.repeat_interleave(settings.samples, dim=0)
    x1 = corruption.sample(network, x0, **update, prediction=facts["prediction"], generator=generator)
    return x1.view(sources, settings.samples, -1).cpu().numpy()


def _rows(method: str, settings: CorrelateSettings, found: dict[str, float], groups: int) -> pd.DataFrame:
    rows = pd.DataFrame({"metric": found.keys(), "value": found.values()})
    of_data = rows["metric"] == "total_correlation_ceiling"
    rows["samples"] = np.where(of_data, groups, settings.sources) * settings.samples
    rows["reference"] = np.where(of_data, "train", None)
    return as_metrics(rows, method=method, nfe=settings.steps, seed=settings.seed, evaluation="correlation")


if __name__ == "__main__":
    main()
