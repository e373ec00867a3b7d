"""Writes token rows of a user's own, checked and split."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from pairflow.artifacts import Metadata, digest, identity, token_column
from pairflow.data.prepared import write_rows
from pairflow.kinds.tokens.settings import Tokens
from pairflow.kinds.tokens.sources import TokenFile


def store(settings: Tokens, files: Mapping[str, Path]) -> None:
    file = Path(settings.file)
    prepared = TokenFile(file).read(settings)
    metadata = Metadata(
        kind="tokens",
        length=prepared.train.shape[1],
        vocabulary_size=settings.vocabulary_size,
        vocabulary=prepared.hash,
        data=identity(prepared.train, prepared.validation),
        split="train",
        parameters=settings.model_dump(mode="json"),
        inputs={"source": digest(file)},
    )
    train, validation = (
        pa.table({"tokens": token_column(rows, settings.vocabulary_size)})
        for rows in (prepared.train, prepared.validation)
    )
    write_rows(files, train, validation, metadata, prepared.contract)
