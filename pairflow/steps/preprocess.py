"""Raw molecules to token rows: read, canonicalise, tokenise, split."""

from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, digest, identity, token_column, write_table
from pairflow.config import Molecules, Standardisation
from pairflow.steps.command import out, quiet, step


@step(Molecules)
@out("--train", help="Training token rows, Parquet.")
@out("--validation", help="Validation token rows, Parquet.")
@out("--vocabulary", help="Vocabulary, JSON.")
@out("--smiles", help="Canonical SMILES of the whole data set, Parquet.")
@out("--known", help="Hashes of the molecules of the whole data set, Parquet.")
@out("--rejected", help="Rows that were left out, with reasons, Parquet.")
@quiet
def main(
    settings: Molecules,
    train: Path,
    validation: Path,
    vocabulary: Path,
    smiles: Path,
    known: Path,
    rejected: Path,
    quiet: bool,
):
    """Turn a file of molecules into token rows, a vocabulary and a table of rejected rows.

    The source is downloaded and verified, or taken from the folder that PAIRFLOW_DATA_DIR names.
    """
    from pairflow.data import library, molecules, sources
    from pairflow.data.known import Known

    provenance = Provenance()
    raw = sources.fetch(settings.source)
    prepared = molecules.prepare(
        library.rows(raw, settings.column, progress=not quiet),
        **settings.model_dump(exclude={"source", "column", *Standardisation.model_fields}),
        standardisation=settings.standardisation,
        validation_rows=sources.validation_rows(settings.source),
        progress=False,  # the reader has a bar of its own
    )
    sources.check_rows(settings.source, len(prepared.smiles) + len(prepared.rejected))
    words = prepared.vocabulary
    shared = {
        "vocabulary": words.hash,
        "data": identity(prepared.train, prepared.validation),
        "parameters": settings.model_dump(mode="json"),
        "inputs": {"source": digest(raw)},
    }
    rows_are = {"length": settings.length, "vocabulary_size": words.size}
    rows_are |= {"padding": molecules.PAD, "mask": molecules.MASK}
    paths = (train, validation, vocabulary, smiles, known, rejected)
    with atomic(*paths) as [new_train, new_validation, new_vocabulary, new_smiles, new_known, new_rejected]:
        for path, split in ((new_train, "train"), (new_validation, "validation")):
            table = pa.table({"tokens": token_column(getattr(prepared, split), words.size)})
            write_table(path, table, Metadata(kind="tokens", split=split, **rows_are, **shared))
        words.save(new_vocabulary)
        write_table(new_smiles, prepared.smiles, Metadata(kind="smiles", **shared))
        Known.of(prepared.smiles["smiles"]).save(new_known, **shared)
        write_table(new_rejected, prepared.rejected, Metadata(kind="rejected rows", **shared))
    provenance.write(train)


if __name__ == "__main__":
    main()
