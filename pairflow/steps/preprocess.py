"""Turns raw molecules into token rows: reads, canonicalises, tokenises and splits them."""

from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, digest, identity, token_column, write_table
from pairflow.config import Molecules
from pairflow.steps.command import out, quiet, step


@step(Molecules)
@out("--train", help="Token rows for training (Parquet).")
@out("--validation", help="Token rows for validation (Parquet).")
@out("--vocabulary", help="Vocabulary (JSON).")
@out("--smiles", help="Canonical SMILES of the whole data set (Parquet).")
@out("--rejected", help="Rows that were left out, with reasons (Parquet).")
@quiet
def main(
    settings: Molecules,
    train: Path,
    validation: Path,
    vocabulary: Path,
    smiles: Path,
    rejected: Path,
    quiet: bool,
):
    """Turn a file of molecules into token rows, a vocabulary and a table of rejected rows.

    The source is taken from the folder that PAIRFLOW_DATA_DIR names, or downloaded and verified.
    """
    from pairflow.data import molecules
    from pairflow.data.sources import source_of

    provenance = Provenance()
    source = source_of(settings)
    prepared = source.read(settings, progress=not quiet)
    words = prepared.vocabulary
    shared = {
        "vocabulary": words.hash,
        "data": identity(prepared.train, prepared.validation),
        "parameters": settings.model_dump(mode="json"),
        "inputs": {"source": digest(source.fetch())},
    }
    rows_are = {"length": settings.length, "vocabulary_size": words.size}
    rows_are |= {"padding": molecules.PAD, "mask": molecules.MASK}
    paths = (train, validation, vocabulary, smiles, rejected)
    with atomic(*paths) as [new_train, new_validation, new_vocabulary, new_smiles, new_rejected]:
        for path, split in ((new_train, "train"), (new_validation, "validation")):
            table = pa.table({"tokens": token_column(getattr(prepared, split), words.size)})
            write_table(path, table, Metadata(kind="tokens", split=split, **rows_are, **shared))
        words.save(new_vocabulary)
        write_table(new_smiles, prepared.smiles, Metadata(kind="smiles", **shared))
        write_table(new_rejected, prepared.rejected, Metadata(kind="rejected rows", **shared))
    provenance.write(train)


if __name__ == "__main__":
    main()
