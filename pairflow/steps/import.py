"""Token rows of a user's own to a file that the steps read."""

from pathlib import Path

import click
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, digest, read_rows, save_table, token_column
from pairflow.limits import MAX_VOCABULARY
from pairflow.steps.command import step
from pairflow.steps.options import out


@step()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--vocabulary-size",
    type=click.IntRange(2, MAX_VOCABULARY),
    required=True,
    help="Number of symbols (K). Tokens are integers from 0 to K - 1.",
)
@out("--out", help="Output file for the token rows (Parquet).")
def main(file: Path, vocabulary_size: int, out: Path):
    """Turn token rows of your own into a file that `pair`, `cover` and `train` read.

    FILE is a .npy file with a two-dimensional array of integers, or a .parquet file with a column `tokens` of
    lists of integers. An experiment needs no import: its `data` names FILE itself.

    \b
      pairflow import my_tokens.npy --vocabulary-size 40 --out train.parquet
    """
    provenance = Provenance()
    rows = read_rows(file, vocabulary_size)
    metadata = Metadata(
        kind="tokens",
        length=rows.shape[1],
        vocabulary_size=vocabulary_size,
        inputs={"source": digest(file)},
    )
    save_table(out, pa.table({"tokens": token_column(rows, vocabulary_size)}), metadata, provenance)
    click.echo(f"{len(rows):,} rows of {rows.shape[1]:,} tokens, K = {vocabulary_size}: {out}", err=True)


if __name__ == "__main__":
    main()
