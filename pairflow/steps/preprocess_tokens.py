"""Splits token rows of a user's own into rows for training and rows that are held out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, digest, identity, token_column, write_table
from pairflow.kinds.tokens.settings import Tokens
from pairflow.steps.command import step
from pairflow.steps.options import out


@step(Tokens)
@out("--train", help="Token rows for training (Parquet).")
@out("--validation", help="Held-out token rows (Parquet).")
@out("--vocabulary", help="N and K, on which models and token rows must agree (JSON).")
@out("--known", help="Hashes of molecules (Parquet): an empty table for token rows.")
def main(settings: Tokens, **files: Path):
    """Check your own token rows and split them, as preprocessing does with molecules and images.

    The rows come from a .npy file with a two-dimensional array of integers, or from the column `tokens` of a
    Parquet file.
    """
    from pairflow.data.known import KnownMolecules
    from pairflow.kinds.tokens.sources import TokenFile

    provenance, file = Provenance(), Path(settings.file)
    prepared = TokenFile(file).read(settings)
    rows = Metadata(
        kind="tokens",
        length=prepared.train.shape[1],
        vocabulary_size=settings.vocabulary_size,
        vocabulary=prepared.hash,
        data=identity(prepared.train, prepared.validation),
        split="train",
        parameters=settings.model_dump(mode="json"),
        inputs={"source": digest(file)},
    )
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        write_table(paths["train"], _table(prepared.train, settings), rows)
        write_table(
            paths["validation"], _table(prepared.validation, settings), replace(rows, split="validation")
        )
        paths["vocabulary"].write_text(prepared.contract + "\n")
        origin = {"vocabulary": rows.vocabulary, "data": rows.data, "inputs": rows.inputs}
        KnownMolecules.from_smiles([]).save(paths["known"], **origin)
    provenance.write(files["train"])


def _table(rows: np.ndarray, settings: Tokens) -> pa.Table:
    return pa.table({"tokens": token_column(rows, settings.vocabulary_size)})


if __name__ == "__main__":
    main()
