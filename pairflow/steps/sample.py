"""A model to samples: token rows for an evaluation, or molecules on demand."""

from functools import partial
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Provenance, token_column, token_dtype
from pairflow.config import DemandSettings, SampleSettings
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions, split_rows
from pairflow.steps.command import existing, on_device, out, resumable, step


def _former_name(context: click.Context, _: click.Parameter, value: int | None) -> None:
    """`--steps` is still accepted in the place of `--nfe`, for one release."""
    if value is not None:
        context.default_map = {"nfe": value}


@step(SampleSettings, count=DemandSettings)
@click.option("--steps", type=int, hidden=True, is_eager=True, expose_value=False, callback=_former_name)
@existing("--model", help="Folder of the model. It is self-contained and may be copied anywhere.")
@out(
    "--out", help="Output file: token rows (Parquet); with --count, molecules (.smi, .csv, .sdf or .parquet)."
)
@resumable
@on_device
def main(settings: SampleSettings | DemandSettings, model: Path, out: Path, resume, device, threads, quiet):
    """Sample from a model, for an evaluation or as a file of molecules.

    For an evaluation it writes token rows in trials, as the workflow does; an interrupted run resumes:

    \b
      pairflow sample --model models/pairflow --nfe 4 --samples 1024 --trials 10 --out samples.parquet

    With --count it writes as many molecules as you ask for, filtered if you wish, in the format that the
    suffix of --out names:

    \b
      pairflow sample --model models/pairflow --count 1000 --nfe 4 --unique --novel --out molecules.sdf
    """
    from pairflow.runtime.device import choose

    provenance = Provenance()
    device = choose(device, threads, provenance)
    if isinstance(settings, SampleSettings):
        return _draw_trials(settings, model, out, device, quiet, resume, provenance)
    from pairflow.training.demand import deliver

    click.echo(deliver(settings, model, out, device, quiet), err=True)
    provenance.write(out)


def _draw_trials(
    settings: SampleSettings,
    folder: Path,
    out: Path,
    device,
    quiet: bool,
    resume: ResumeOptions,
    provenance: Provenance,
) -> None:
    """Write the token rows of all trials; every method and NFE starts from the same source states."""
    from pairflow.runtime.progress import network_bar
    from pairflow.training.model import Model

    model = Model.load(folder, device=device)
    metadata = model.metadata("samples", {"method": model.method, **settings.model_dump(mode="json")})
    table = ResumableTable(out, metadata, model.method, resume, provenance, device)
    blocks = split_rows(settings.samples, model.batch_rows)
    batches = [(trial, *block) for trial in range(settings.trials) for block in blocks]

    def draw(batch: BlockKey) -> np.ndarray:
        trial, first, rows = batch
        _, samples = model.draw(settings, settings.nfe, rows, "sample", trial, first)
        return samples.numpy().astype(token_dtype(model.corruption.symbols))

    bar = partial(network_bar, model.network, settings.nfe + settings.greedy_tail, quiet)
    tokens = np.concatenate(table.make(batches, draw, bar))
    trials, samples = np.arange(settings.trials, dtype=np.int32), np.arange(settings.samples, dtype=np.int32)
    columns = {
        "tokens": token_column(tokens, model.vocabulary_size),
        "trial": np.repeat(trials, settings.samples),
        "sample": np.tile(samples, settings.trials),
    }
    table.write(pa.table(columns))


if __name__ == "__main__":
    main()
