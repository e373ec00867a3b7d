"""Raw images to token rows: read, quantise, split."""

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, identity, token_column, write_table
from pairflow.config import Images
from pairflow.steps.command import out, quiet, step


@step(Images)
@out("--train", help="Training token rows with labels, Parquet.")
@out("--validation", help="Held-out token rows with labels, Parquet: the test set where one is published.")
@out("--vocabulary", help="Shape and levels, which models and token rows must agree on, JSON.")
@out("--known", help="Hashes of molecules, Parquet: none for images.")
@quiet
def main(settings: Images, train: Path, validation: Path, vocabulary: Path, known: Path, quiet: bool):
    """Turn images into token rows, in channel-height-width order.

    The source is embedded, a folder of yours, or downloaded and verified; or it is taken from the folder that
    PAIRFLOW_DATA_DIR names.
    """
    from pairflow.data import images
    from pairflow.data.known import Known

    provenance = Provenance()
    prepared = images.prepare(**settings.model_dump(), progress=not quiet)
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
        new_vocabulary.write_text(images.contract(prepared.shape, prepared.levels) + "\n")
        Known.of([]).save(new_known, vocabulary=made.vocabulary, data=made.data, inputs=made.inputs)
        write_table(new_train, _table(prepared.train, prepared.train_labels, prepared.levels), made)
        write_table(new_validation, _table(prepared.test, prepared.test_labels, prepared.levels), held_out)
    provenance.write(train)


def _table(tokens: np.ndarray, labels: np.ndarray | None, levels: int) -> pa.Table:
    known = pa.nulls(len(tokens), pa.int32()) if labels is None else pa.array(labels, pa.int32())
    return pa.table({"tokens": token_column(tokens, levels), "label": known})


if __name__ == "__main__":
    main()
