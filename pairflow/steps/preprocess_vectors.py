"""Vectors, drawn at random or a user's own, to vectors for training and vectors that are held out."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Metadata, Provenance, atomic, digest, identity, row_column, write_table
from pairflow.kinds.vectors.settings import Vectors
from pairflow.steps.command import step
from pairflow.steps.options import out


@step(Vectors)
@out("--train", help="Vectors for training (Parquet).")
@out("--validation", help="Held-out vectors (Parquet).")
@out("--vocabulary", help="The length of the vectors, on which models and data must agree (JSON).")
@out("--known", help="Hashes of molecules (Parquet): an empty table for vectors.")
def main(settings: Vectors, **files: Path):
    """Make the vectors of a continuous flow: points of two moons in d dimensions, or your own in two parts.

    Your own come from a .npy file with a two-dimensional array of floating-point numbers.
    """
    from pairflow.data.known import KnownMolecules
    from pairflow.kinds.vectors.sources import source_of

    provenance = Provenance()
    prepared = source_of(settings).read(settings)
    rows = Metadata(
        kind="vectors",
        length=prepared.train.shape[1],
        vocabulary=prepared.hash,
        data=identity(prepared.train, prepared.validation),
        split="train",
        parameters=settings.model_dump(mode="json"),
        inputs={"source": digest(Path(settings.file))} if settings.file else {},
    )
    with atomic(*files.values()) as temporary:
        paths = dict(zip(files, temporary, strict=True))
        write_table(paths["train"], pa.table({"values": row_column(prepared.train)}), rows)
        held_out = pa.table({"values": row_column(prepared.validation)})
        write_table(paths["validation"], held_out, replace(rows, split="validation"))
        paths["vocabulary"].write_text(prepared.contract + "\n")
        origin = {"vocabulary": rows.vocabulary, "data": rows.data, "inputs": rows.inputs}
        KnownMolecules.from_smiles([]).save(paths["known"], **origin)
    provenance.write(files["train"])


if __name__ == "__main__":
    main()
