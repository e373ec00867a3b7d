"""Draws samples from a model: token rows for an evaluation, or molecules, text or images on demand."""

from functools import partial
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Provenance
from pairflow.config import DemandSettings, FlowSampleSettings, SampleSettings
from pairflow.runtime.resume import ResumableTable, ResumeOptions, split_rows
from pairflow.steps.command import step
from pairflow.steps.options import any_model, on_device, out, resumable

AnySettings = SampleSettings | DemandSettings | FlowSampleSettings


@step(SampleSettings, count=DemandSettings, solver=FlowSampleSettings)
@any_model(
    "--model",
    required=True,
    help="The model: its folder, which may be copied anywhere; a ZIP archive of this folder, or the "
    "archive's address; hf:owner/name on the Hugging Face Hub; or the name of a model that comes with "
    "pairflow (zinc250k). With --count also the folder of a finished experiment, such as results/demo, "
    "whose metrics then choose the model.",
)
@out(
    "--out",
    help="Output file: token rows (Parquet). With --count: molecules (.smi, .csv, .xlsx, .sdf or .parquet, "
    "or .html for a page to look through), text (.txt, .csv) or images (.png, .npy).",
)
@resumable
@on_device
def main(settings: AnySettings, model: Path, out: Path, resume, device, threads, quiet):
    """Sample from a model: as many molecules, texts or images as you ask for, or an evaluation's samples.

    With --count it writes valid molecules, texts or images. Options filter molecules. The suffix of --out
    decides the format:

    \b
      pairflow sample --model results/demo --count 1000 --unique --novel --out molecules.csv
      pairflow sample --model models/pairflow --nfe 4 --count 1000 --weight :450 --out molecules.sdf
      pairflow sample --model zinc250k --count 1000 --out molecules.html
      pairflow sample --model results/shakespeare --count 100 --out samples.txt
      pairflow sample --model results/digits --count 64 --out digits.png

    For an evaluation it writes token rows in trials, as the workflow does. An interrupted run resumes:

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
    from pairflow.generate.demand import SampleStream, deliver

    stream = SampleStream(model, settings, device)
    for note in filter(None, (stream.choice.reason, stream.delivery.note)):
        click.echo(note, err=True)
    click.echo(deliver(stream, out, quiet, threads), err=True)
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
    """Draw the samples of all trials from the model in `folder`, and write them to `out`. All methods and
    numbers of steps start from the same source states."""
    with provenance.uncounted():
        from pairflow.generate.sample import trials
        from pairflow.runtime.progress import network_bar
        from pairflow.training.model import Model

        model = Model.load(folder, device=device)
        model.warm_up()
    drawing = trials(model, settings)
    metadata = model.metadata(drawing.kind, {"method": model.method, **settings.model_dump(mode="json")})
    table = ResumableTable(out, metadata, model.method, resume, provenance, device)
    blocks = split_rows(settings.samples, model.batch_rows)
    batches = [(trial, *block) for trial in range(settings.trials) for block in blocks]
    progress = partial(network_bar, model.network, drawing.calls, quiet)
    drawn = np.concatenate(table.make(batches, drawing.draw, progress))
    trial, sample = np.arange(settings.trials, dtype=np.int32), np.arange(settings.samples, dtype=np.int32)
    numbers = {"trial": np.repeat(trial, settings.samples), "sample": np.tile(sample, settings.trials)}
    table.write(pa.table({**drawing.columns(drawn), **numbers}))


if __name__ == "__main__":
    main()
