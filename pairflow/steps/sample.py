"""A model to samples."""

from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Science, Stopwatch, atomic, token_column, write_table
from pairflow.config import SampleSettings
from pairflow.steps._command import device, existing, out, quiet, step, threads


@step(SampleSettings)
@existing("--model", help="Folder with model.safetensors and model.json.")
@out("--out", help="Samples, Parquet: tokens, trial, sample.")
@device
@threads
@quiet
def main(settings: SampleSettings, model: Path, out: Path, device, threads, quiet):
    """Draw samples: updates in float64 from source states, then the greedy tail."""
    import torch
    from tqdm import tqdm

    from pairflow.steps._device import choose
    from pairflow.training import checkpoint

    stopwatch = Stopwatch()
    where = choose(device, threads)
    stopwatch.device = str(where)
    network, facts = checkpoint.load(model, device=where)
    at_once = checkpoint.noise_of(facts).rows_at_once(facts["length"])
    batches = [
        (trial, first, min(at_once, settings.samples - first))
        for trial in range(settings.trials)
        for first in range(0, settings.samples, at_once)
    ]
    tokens = [
        _draw(network, facts, settings, trial, first, rows, where)
        for trial, first, rows in tqdm(batches, unit="batch", disable=quiet, mininterval=1.0)
    ]
    columns = {
        "tokens": token_column(torch.cat(tokens).numpy(), facts["vocabulary_size"]),
        "trial": pa.array([trial for trial, _, rows in batches for _ in range(rows)], pa.int32()),
        "sample": pa.array([first + row for _, first, rows in batches for row in range(rows)], pa.int32()),
    }
    made = Science(
        kind="samples",
        length=facts["length"],
        vocabulary_size=facts["vocabulary_size"],
        vocabulary=facts["vocabulary"],
        shape=facts.get("shape"),
        parameters={"method": facts["method"], **settings.model_dump(mode="json")},
        inputs={"model": facts["weights"]},
    )
    with atomic(out) as [temporary]:
        write_table(temporary, pa.table(columns), made)
    stopwatch.write(out)


def _draw(network, facts, settings: SampleSettings, trial: int, first: int, rows: int, where):
    """One batch (rows, N) by (seed, trial, first): every method and NFE starts from the same noise."""
    import torch

    from pairflow import rng
    from pairflow.training.checkpoint import noise_of

    generator = torch.Generator(where).manual_seed(rng.stream_seed(settings.seed, "sample", trial, first))
    noise = noise_of(facts)
    update = settings.model_dump(include={"sampler", "conversion", "greedy_tail"})
    x0 = noise.source((rows, facts["length"]), generator, where)
    return noise.sample(
        network, x0, **update, steps=settings.nfe, prediction=facts["prediction"], generator=generator
    ).cpu()


if __name__ == "__main__":
    main()
