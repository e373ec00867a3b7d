"""Turns raw images into token rows: reads, quantises and splits them."""

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, identity, token_column, write_table
from pairflow.config import Images
from pairflow.steps.command import out, quiet, step


@step(Images)
@out("--train", help="Token rows for training, with labels (Parquet).")
@out(
    "--validation",
    help="Held-out token rows with labels (Parquet), those of the published test set if there is one.",
)
@out("--vocabulary", help="Shape and levels, on which models and token rows must agree (JSON).")
@out("--known", help="Hashes of molecules (Parquet): an empty table for images.")
@quiet
def main(settings: Images, train: Path, validation: Path, vocabulary: Path, known: Path, quiet: bool):
    """Turn images into token rows, in channel-height-width order.

    The source is embedded or your own folder. A published data set is taken from the folder that
    PAIRFLOW_DATA_DIR names, or downloaded and verified.
    """
    from pairflow.data.images import contract
    from pairflow.data.known import KnownMolecules
    from pairflow.data.sources import image_source

    provenance = Provenance()
    prepared = image_source(settings).read(settings, progress=not quiet)
    if prepared.partial:
        click.echo(f"pairflow preprocess_images: note: {prepared.partial}", err=True)
    made = Metadata(
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
    held_out = replace(made, split="validation")
    with atomic(train, validation, vocabulary, known) as [
        new_train,
        new_validation,
        new_vocabulary,
        new_known,
    ]:
        new_vocabulary.write_text(contract(prepared.shape, prepared.levels) + "\n")
        KnownMolecules.from_smiles([]).save(
            new_known, vocabulary=made.vocabulary, data=made.data, inputs=made.inputs
        )
        write_table(new_train, _table(prepared.train, prepared.train_labels, prepared.levels), made)
        write_table(new_validation, _table(prepared.test, prepared.test_labels, prepared.levels), held_out)
    provenance.write(train)


def _table(tokens: np.ndarray, labels: np.ndarray | None, levels: int) -> pa.Table:
    label = pa.nulls(len(tokens), pa.int32()) if labels is None else pa.array(labels, pa.int32())
    return pa.table({"tokens": token_column(tokens, levels), "label": label})


if __name__ == "__main__":
    main()
