"""Trains a base model on token rows or pairs."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import BASES, TrainSettings
from pairflow.config.methods import PAIRINGS
from pairflow.steps.command import step
from pairflow.steps.options import existing, fit_options, model_folder, model_outputs
from pairflow.training.options import FitOptions, ModelPaths

_WITHOUT_PAIRS = ", ".join(name for name, base in BASES.items() if not base.coupled)
_ON_PAIRS = ", ".join(PAIRINGS["pair"] + PAIRINGS["potentials"])


@step(TrainSettings)
@existing(
    "--data",
    help=f"Token rows or vectors (for {_WITHOUT_PAIRS}), or pairs (for {_ON_PAIRS}), Parquet.",
)
@existing("--validation", help="Validation token rows (Parquet).")
@existing("--vocabulary", required=False, help="Vocabulary of the data set (JSON), to store with the model.")
@existing(
    "--known", required=False, help="Hashes of the data set's molecules (Parquet), to store with the model."
)
@existing(
    "--labels",
    required=False,
    help="Token rows of the same data set, with labels if the model is to be conditional (Parquet).",
)
@model_folder(
    "--from",
    "parent",
    help="Model to start from instead of random weights: a folder, or the name of one that comes with "
    "pairflow (zinc250k). It must have the same length, network and kind of noise. Symbols missing from "
    "its vocabulary start from random weights.",
)
@model_outputs
@fit_options
def main(
    settings: TrainSettings,
    data: Path,
    validation: Path,
    vocabulary: Path | None,
    known: Path | None,
    labels: Path | None,
    parent: Path | None,
    outputs: ModelPaths,
    options: FitOptions,
):
    """Train a base model: mdlm, udlm, condot and ot draw new noise in every iteration; random and pairflow
    use fixed pairs. sdot draws new noise, too, and the potentials of its pairs lead the noise to the data.

    An interrupted training resumes, and gives the same weights, bit for bit. Pass --vocabulary and --known to
    store both with the model, so that `pairflow sample --count` needs only the model's folder. To share each
    batch between several GPUs, start the step with `python -m pairflow.runtime.launch 2 pairflow.steps.train
    ...`.
    """
    from pairflow.runtime.device import choose
    from pairflow.training.catalogue import base_objective
    from pairflow.training.fit import fit, frequencies_of, read_base_rows
    from pairflow.training.inherit import start_from
    from pairflow.training.model import Model
    from pairflow.training.model_files import files_of_data, known_digest

    provenance = Provenance()
    rows = read_base_rows(settings, data, validation, labels)
    files = files_of_data(vocabulary, known, data, rows.metadata)
    device = choose(options.device, options.threads, provenance)
    facts = {"known": known_digest(files), "frequencies": frequencies_of(settings, rows, device)}
    model = Model.create(settings, rows.metadata, device, inputs=rows.inputs, **facts)
    if parent:
        model, note = start_from(parent, model, vocabulary)
        click.echo(f"pairflow train: {note}", err=True)
    fit(
        model, base_objective(model, rows), settings.training, rows, outputs, options, provenance, files=files
    )


if __name__ == "__main__":
    main()
