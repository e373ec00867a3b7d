"""Turns raw molecules into token rows: reads, canonicalises, tokenises and splits them."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, digest, identity, token_column, write_table
from pairflow.kinds.molecules.settings import Molecules
from pairflow.steps.command import step
from pairflow.steps.options import out, parent_digest, parent_vocabulary, quiet


@step(Molecules)
@out("--train", help="Token rows for training (Parquet).")
@out("--validation", help="Token rows for validation (Parquet).")
@out("--vocabulary", help="Vocabulary (JSON).")
@out("--smiles", help="Canonical SMILES of the whole data set (Parquet).")
@out("--known", help="Hashes of the molecules of the whole data set (Parquet).")
@out("--rejected", help="Rows that were left out, with reasons (Parquet).")
@parent_vocabulary
@quiet
def main(settings: Molecules, quiet: bool, parent_vocabulary: Path | None, **files: Path):
    """Turn a file of molecules into token rows, a vocabulary and a table of rejected rows.

    A published data set is read from the folder that the environment variable PAIRFLOW_DATA_DIR names;
    otherwise it is downloaded and verified.
    """
    from pairflow.data.known import KnownMolecules
    from pairflow.kinds.molecules import prepare as molecules
    from pairflow.kinds.molecules.data_sets import source_of

    provenance = Provenance()
    source = source_of(settings)
    parent = molecules.Vocabulary.load(parent_vocabulary) if parent_vocabulary else None
    prepared = source.read(settings, progress=not quiet, parent=parent)
    vocabulary = prepared.vocabulary
    shared: dict[str, Any] = {
        "vocabulary": vocabulary.hash,
        "data": identity(prepared.train, prepared.validation),
        "parameters": settings.model_dump(mode="json"),
        "inputs": {"source": digest(source.fetch()), **parent_digest(parent_vocabulary)},
    }
    row_format: dict[str, Any] = {"length": settings.length, "vocabulary_size": vocabulary.size}
    row_format |= {"padding": molecules.PAD, "mask": molecules.MASK}
    tables, row_format["condition"] = _tables(settings, prepared, source)
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        for split, table in tables.items():
            write_table(paths[split], table, Metadata(kind="tokens", split=split, **row_format, **shared))
        vocabulary.save(paths["vocabulary"])
        write_table(paths["smiles"], prepared.smiles, Metadata(kind="smiles", **shared))
        KnownMolecules.from_smiles(prepared.smiles["smiles"]).save(paths["known"], **shared)
        write_table(paths["rejected"], prepared.rejected, Metadata(kind="rejected rows", **shared))
    provenance.write(files["train"])


def _tables(settings: Molecules, prepared, source) -> tuple[dict[str, pa.Table], dict[str, Any] | None]:
    """The token rows of both splits, with labels if there is a condition, and the classes of these."""
    from pairflow.kinds.molecules.condition import label_molecules

    splits = {"train": prepared.train, "validation": prepared.validation}
    columns = {
        split: {"tokens": token_column(rows, prepared.vocabulary.size)} for split, rows in splits.items()
    }
    facts = None
    if settings.condition:
        classes, labels = label_molecules(settings.condition, prepared.smiles, source.fetch())
        for split in splits:
            columns[split]["label"] = pa.array(labels[prepared.smiles["split"] == split])
        facts = classes.model_dump(mode="json")
    return {split: pa.table(named) for split, named in columns.items()}, facts


if __name__ == "__main__":
    main()
