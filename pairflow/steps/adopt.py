"""Checks a user's own pairs and writes the pairs that a model can train on."""

from dataclasses import replace
from pathlib import Path

import click
import pyarrow as pa

from pairflow.artifacts import ADOPTED, Provenance, save_table, token_column
from pairflow.config import AdoptSettings
from pairflow.steps.command import step
from pairflow.steps.options import existing, out


@step(AdoptSettings)
@existing("--user-pairs", help="Your own pairs (Parquet), written by `pairflow.write_pairs`.")
@existing("--tokens", help="Training rows (Parquet).")
@existing("--validation", help="Held-out rows (Parquet).")
@out("--out", help="Output file for the pairs x0, x1 (Parquet).")
def main(settings: AdoptSettings, user_pairs: Path, tokens: Path, validation: Path, out: Path):
    """Check your own pairs against the data, so that a model can train on them.

    Each x1 must be a row of the data. Pairs of held-out rows are left out; training rows may come in any
    order, several times or not at all.
    """
    from pairflow.data.own_pairs import read_own_pairs

    provenance = Provenance()
    pairs = read_own_pairs(user_pairs, tokens, validation)
    click.echo(
        f"pairflow adopt: note: {len(pairs.x1):,} pairs of training rows; {pairs.held_out:,} pairs of "
        f"held-out rows left out; {pairs.unpaired:,} training rows have no pair",
        err=True,
    )
    size = pairs.metadata.dimensions[1]
    table = pa.table({"x0": token_column(pairs.x0, size), "x1": token_column(pairs.x1, size)})
    counts = dict(zip(ADOPTED, (pairs.unpaired, pairs.held_out), strict=True))
    parameters = {**settings.model_dump(mode="json"), **counts}
    written = replace(pairs.metadata, kind="pairs", parameters=parameters, inputs=pairs.inputs)
    save_table(out, table, written, provenance)


if __name__ == "__main__":
    main()
