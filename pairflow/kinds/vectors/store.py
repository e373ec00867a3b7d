"""Writes vectors, drawn at random or a user's own, in two parts."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Metadata, digest, identity, row_column
from pairflow.data.prepared import write_rows
from pairflow.kinds.vectors.settings import Vectors
from pairflow.kinds.vectors.sources import source_of


def store(settings: Vectors, files: Mapping[str, Path]) -> None:
    prepared = source_of(settings).read(settings)
    metadata = Metadata(
        kind="vectors",
        length=prepared.train.shape[1],
        vocabulary=prepared.hash,
        data=identity(prepared.train, prepared.validation),
        split="train",
        parameters=settings.model_dump(mode="json"),
        inputs={"source": digest(Path(settings.file))} if settings.file else {},
    )
    parts = (prepared.train, prepared.validation)
    train, validation = (pa.table({"values": row_column(rows)}) for rows in parts)
    write_rows(files, train, validation, metadata, prepared.contract)
