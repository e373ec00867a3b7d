"""Scores molecules or texts: how improbable each one is under a model."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import ScoreSettings
from pairflow.steps.command import step
from pairflow.steps.options import any_model, on_device, out


@step(ScoreSettings)
@click.argument("rows", type=click.Path(path_type=Path))
@any_model(
    "--model",
    required=True,
    help="The model: its folder; a ZIP archive of this folder, or the archive's address; hf:owner/name on "
    "the Hugging Face Hub; or the name of a model that comes with pairflow (zinc250k). It may also be "
    "the folder of a finished experiment, whose metrics then choose the model.",
)
@any_model(
    "--against",
    help="Another model, such as the one that a fine-tuned model started from. The table then says how much "
    "less probable a row is under --model than under this model.",
)
@out("--out", help="Output file with a line for each row of ROWS (.csv or .parquet).")
@click.option(
    "--column", help="Column with the molecules or texts, if ROWS is a table; found if it is not given."
)
@on_device
def main(
    settings: ScoreSettings,
    rows: Path,
    model: Path,
    out: Path,
    column: str | None,
    against: Path | None,
    device,
    threads,
    quiet,
):
    """Score the molecules, or the texts, in the file ROWS: an upper bound on -log p under a model, in nats.

    Unusual rows have a large bound per token. Rows without a score stay in the table, with the reason: RDKit
    cannot read them, they have symbols that the model does not know, or they are longer than the model's
    rows.

    \b
      pairflow score molecules.smi --model results/demo --out scores.csv
      pairflow score text.txt --model results/shakespeare --draws 512 --out scores.parquet
    """
    provenance = Provenance()
    with provenance.uncounted():
        from pairflow.runtime.device import choose

        device = choose(device, threads, provenance)
    from pairflow.generate.score import Scorer, write_scores

    scorer = Scorer(model, settings, device)
    if scorer.choice.reason:
        click.echo(scorer.choice.reason, err=True)
    other = Scorer(against, settings, device) if against else None
    click.echo(write_scores(scorer, rows, out, column, quiet, other), err=True)
    provenance.write(out)


if __name__ == "__main__":
    main()
