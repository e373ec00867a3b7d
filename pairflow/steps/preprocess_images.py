"""Turns raw images into token rows: reads, quantises and splits them."""

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, identity, token_column, write_table
from pairflow.kinds.images.settings import Images
from pairflow.steps.command import step
from pairflow.steps.options import out, quiet


@step(Images)
@out("--train", help="Token rows for training, with labels (Parquet).")
@out(
    "--validation",
    help="Held-out token rows with labels (Parquet), those of the published test set if there is one.",
)
@out("--vocabulary", help="Shape and levels, on which models and token rows must agree (JSON).")
@out("--known", help="Hashes of molecules (Parquet): an empty table for images.")
@quiet
def main(settings: Images, quiet: bool, **files: Path):
    """Turn images into token rows, in channel-height-width order.

    The images come with the package, from your own folder or from a published data set. A published data
    set is taken from the folder that
    PAIRFLOW_DATA_DIR names, or downloaded and verified.
    """
    from pairflow.data.known import KnownMolecules
    from pairflow.kinds.images.data_sets import source_of
    from pairflow.kinds.images.prepare import contract

    provenance = Provenance()
    prepared = source_of(settings).read(settings, progress=not quiet)
    if prepared.partial:
        click.echo(f"pairflow preprocess_images: note: {prepared.partial}", err=True)
    rows = _metadata(settings, prepared)
    origin = {"vocabulary": rows.vocabulary, "data": rows.data, "inputs": rows.inputs}
    levels = prepared.levels
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        write_table(paths["train"], _table(prepared.train, prepared.train_labels, levels), rows)
        test = _table(prepared.test, prepared.test_labels, levels)
        write_table(paths["validation"], test, replace(rows, split="validation"))
        paths["vocabulary"].write_text(contract(prepared.shape, levels) + "\n")
        KnownMolecules.from_smiles([]).save(paths["known"], **origin)
    provenance.write(files["train"])


def _metadata(settings: Images, prepared) -> Metadata:
    """The metadata of the training rows."""
    return Metadata(
        kind="tokens",
        length=prepared.train.shape[1],
        vocabulary_size=prepared.levels,
        vocabulary=prepared.hash,
        shape=list(prepared.shape),
        data=identity(prepared.train, prepared.test),
        split="train",
        parameters={**settings.model_dump(mode="json"), "partial": prepared.partial},
        inputs={"source": prepared.source},
    )


def _table(tokens: np.ndarray, labels: np.ndarray | None, levels: int) -> pa.Table:
    label = pa.nulls(len(tokens), pa.int32()) if labels is None else pa.array(labels, pa.int32())
    return pa.table({"tokens": token_column(tokens, levels), "label": label})


if __name__ == "__main__":
    main()
