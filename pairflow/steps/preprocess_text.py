"""Turns text into token rows: reads, normalises, tokenises and splits it."""

from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, identity, token_column, write_table
from pairflow.kinds.text.settings import Text
from pairflow.steps.command import step
from pairflow.steps.options import out, parent_digest, parent_vocabulary


@step(Text)
@out("--train", help="Token rows for training (Parquet).")
@out("--validation", help="Held-out token rows (Parquet).")
@out("--judge", help="Token rows that only the judge of samples learns from (Parquet).")
@out("--vocabulary", help="The tokeniser (JSON).")
@out("--known", help="Hashes of molecules (Parquet): an empty table for text.")
@out("--rejected", help="Pieces of text that were left out, with reasons (Parquet).")
@parent_vocabulary
def main(settings: Text, parent_vocabulary: Path | None, **files: Path):
    """Turn text into token rows, a vocabulary and a table of rejected pieces.

    The text comes with the package, from your own file or folder, or from a published data set. A published
    data set is read from the folder that PAIRFLOW_DATA_DIR names, or downloaded and verified.
    """
    from pairflow.kinds.text.data_sets import source_of
    from pairflow.kinds.text.prepare import summarise
    from pairflow.kinds.text.tokenisers import load_tokeniser

    provenance = Provenance()
    source = source_of(settings)
    parent = load_tokeniser(parent_vocabulary) if parent_vocabulary else None
    prepared = source.read(settings, parent)
    if len(prepared.rejected):
        click.echo(f"pairflow preprocess_text: note: {summarise(prepared.rejected)}", err=True)
    shared: dict[str, Any] = {
        "vocabulary": prepared.tokeniser.hash,
        "data": identity(prepared.train, prepared.validation),
        "parameters": settings.model_dump(mode="json"),
        "inputs": {"source": source.digest(), **parent_digest(parent_vocabulary)},
    }
    with atomic(*files.values()) as temporary:
        write(dict(zip(files, temporary, strict=True)), prepared, shared)
    provenance.write(files["train"])


def write(paths: dict[str, Path], prepared: Any, shared: dict[str, Any]) -> None:
    """Write the files of prepared text, whose tables have `shared` in their metadata.

    `judge` has the rows of the last part of the text, which do not overlap, in the order of the text: without
    their margins, one after the other, they are that part.
    """
    from pairflow.data.known import KnownMolecules

    tokeniser = prepared.tokeniser
    row_format = {"length": prepared.train.shape[1], "vocabulary_size": tokeniser.size}
    row_format |= {"padding": tokeniser.padding, "mask": tokeniser.mask}
    for split in ("train", "validation", "judge"):
        table = pa.table({"tokens": token_column(getattr(prepared, split), tokeniser.size)})
        write_table(paths[split], table, Metadata(kind="tokens", split=split, **row_format, **shared))
    tokeniser.save(paths["vocabulary"])
    origin = {key: value for key, value in shared.items() if key != "parameters"}
    KnownMolecules.from_smiles([]).save(paths["known"], **origin)
    write_table(paths["rejected"], prepared.rejected, Metadata(kind="rejected rows", **shared))


if __name__ == "__main__":
    main()
