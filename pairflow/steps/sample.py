"""A model to samples: token rows for an evaluation, or molecules or text on demand."""

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Provenance, token_column, token_dtype
from pairflow.config import FlowSampleSettings, SampleSettings
from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import DemandSettings
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions, split_rows
from pairflow.steps.command import step
from pairflow.steps.options import model_folder, on_device, out, resumable

AnySettings = SampleSettings | DemandSettings | FlowSampleSettings


@step(SampleSettings, count=DemandSettings, solver=FlowSampleSettings)
@model_folder(
    "--model",
    required=True,
    help="Folder of the model, which is self-contained and may be copied anywhere, or the name of one that "
    "comes with pairflow (zinc250k); with --count also that of a finished experiment, such as results/demo, "
    "whose metrics then choose the model.",
)
@out(
    "--out",
    help="Output file: token rows (Parquet); with --count, molecules (.smi, .csv, .xlsx, .sdf or .parquet) "
    "or text (.txt, .csv).",
)
@resumable
@on_device
def main(settings: AnySettings, model: Path, out: Path, resume, device, threads, quiet):
    """Sample from a model: as many molecules or texts as you ask for, or the samples of an evaluation.

    With --count it writes valid molecules, filtered if you wish; the suffix of --out decides the format:

    \b
      pairflow sample --model results/demo --count 1000 --unique --novel --out molecules.csv
      pairflow sample --model models/pairflow --nfe 4 --count 1000 --weight :450 --out molecules.sdf
      pairflow sample --model results/shakespeare --count 100 --out samples.txt

    For an evaluation it writes token rows in trials, as the workflow does; an interrupted run resumes:

    \b
      pairflow sample --model models/pairflow --nfe 4 --samples 1024 --trials 10 --out samples.parquet

    A model of a continuous flow makes vectors or images, by the solver that you name:

    \b
      pairflow sample --model models/condot --solver euler --nfe 4 --samples 5000 --out samples.parquet
    """
    provenance = Provenance()
    with provenance.uncounted():
        from pairflow.runtime.device import choose

        device = choose(device, threads, provenance)
    if not isinstance(settings, DemandSettings):
        return _draw_trials(settings, model, out, device, quiet, resume, provenance)
    from pairflow.generate.choice import makes_text
    from pairflow.generate.demand import MoleculeStream, deliver
    from pairflow.generate.text_demand import TextStream, deliver_text

    text = makes_text(model)
    stream: Any = (TextStream if text else MoleculeStream)(model, settings, device)
    if stream.choice.reason:
        click.echo(stream.choice.reason, err=True)
    summary = deliver_text(stream, out, quiet) if text else deliver(stream, out, quiet, threads)
    click.echo(summary, err=True)
    provenance.write(out)


def _draw_trials(
    settings: SampleSettings | FlowSampleSettings,
    folder: Path,
    out: Path,
    device,
    quiet: bool,
    resume: ResumeOptions,
    provenance: Provenance,
) -> None:
    """Write the samples of all trials; every method and NFE starts from the same source states."""
    with provenance.uncounted():
        from pairflow.runtime.progress import network_bar
        from pairflow.training.model import Model
        from pairflow.training.velocity import follow, path_columns

        model = Model.load(folder, device=device)
        model.warm_up()
    continuous = isinstance(settings, FlowSampleSettings)
    if model.continuous != continuous:
        raise InputError(f"{folder}: --solver is needed with a model of a continuous flow, and only then")
    kind = "vector samples" if model.vocabulary_size is None else "samples"
    metadata = model.metadata(kind, {"method": model.method, **settings.model_dump(mode="json")})
    table = ResumableTable(out, metadata, model.method, resume, provenance, device)
    blocks = split_rows(settings.samples, model.batch_rows)
    batches = [(trial, *block) for trial in range(settings.trials) for block in blocks]

    def draw(batch: BlockKey) -> np.ndarray:
        trial, first, rows = batch
        if isinstance(settings, FlowSampleSettings):
            return follow(model, settings, rows, trial, first)
        _, samples = model.draw(settings, settings.nfe, rows, "sample", trial, first)
        return samples.numpy().astype(token_dtype(model.corruption.symbols))

    nfe = settings.nfe
    calls = settings.count_calls(nfe)
    drawn = np.concatenate(table.make(batches, draw, partial(network_bar, model.network, calls, quiet)))
    trials, samples = np.arange(settings.trials, dtype=np.int32), np.arange(settings.samples, dtype=np.int32)
    size = model.vocabulary_size
    columns = path_columns(drawn, size) if continuous else {"tokens": token_column(drawn, size or 1)}
    numbers = {"trial": np.repeat(trials, settings.samples), "sample": np.tile(samples, settings.trials)}
    table.write(pa.table(columns | numbers))


if __name__ == "__main__":
    main()
