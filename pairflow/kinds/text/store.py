"""Writes text as token rows, its tokeniser, and the pieces that were left out."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pairflow.artifacts import Metadata, atomic, identity, token_column, write_table
from pairflow.data.prepared import parent_digest, write_no_molecules
from pairflow.kinds.text.data_sets import source_of
from pairflow.kinds.text.prepare import summarise
from pairflow.kinds.text.settings import Text
from pairflow.kinds.text.tokenisers import load_tokeniser


def store(settings: Text, files: Mapping[str, Path], parent: Path | None) -> None:
    source = source_of(settings)
    prepared = source.read(settings, load_tokeniser(parent) if parent else None)
    if len(prepared.rejected):
        print(f"pairflow preprocess: note: {summarise(prepared.rejected)}", file=sys.stderr)
    shared: dict[str, Any] = {
        "vocabulary": prepared.tokeniser.hash,
        "data": identity(prepared.train, prepared.validation),
        "parameters": settings.model_dump(mode="json"),
        "inputs": {"source": source.digest(), **parent_digest(parent)},
    }
    with atomic(*files.values()) as temporary:
        _write(dict(zip(files, temporary, strict=True)), prepared, shared)


def _write(paths: dict[str, Path], prepared: Any, shared: dict[str, Any]) -> None:
    """Write the files of prepared text, whose tables have `shared` in their metadata.

    `judge` has the rows of the last part of the text, which do not overlap, in the order of the text: without
    their margins, one after the other, they are that part.
    """
    tokeniser = prepared.tokeniser
    row_format = {"length": prepared.train.shape[1], "vocabulary_size": tokeniser.size}
    row_format |= {"padding": tokeniser.padding, "mask": tokeniser.mask}
    for split in ("train", "validation", "judge"):
        table = pa.table({"tokens": token_column(getattr(prepared, split), tokeniser.size)})
        write_table(paths[split], table, Metadata(kind="tokens", split=split, **row_format, **shared))
    tokeniser.save(paths["vocabulary"])
    write_no_molecules(paths["known"], shared["vocabulary"], shared["data"], shared["inputs"])
    write_table(paths["rejected"], prepared.rejected, Metadata(kind="rejected rows", **shared))
