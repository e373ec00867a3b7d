"""Writes images as token rows with labels, in channel-height-width order."""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, identity, token_column
from pairflow.data.prepared import write_rows
from pairflow.kinds.images.data_sets import source_of
from pairflow.kinds.images.prepare import contract
from pairflow.kinds.images.settings import Images


def store(settings: Images, files: Mapping[str, Path], progress: bool) -> None:
    prepared = source_of(settings).read(settings, progress=progress)
    if prepared.partial:
        print(f"pairflow preprocess: note: {prepared.partial}", file=sys.stderr)
    levels = prepared.levels
    metadata = Metadata(
        kind="tokens",
        length=prepared.train.shape[1],
        vocabulary_size=levels,
        vocabulary=prepared.hash,
        shape=list(prepared.shape),
        data=identity(prepared.train, prepared.test),
        split="train",
        parameters={**settings.model_dump(mode="json"), "partial": prepared.partial},
        inputs={"source": prepared.source},
    )
    train = _table(prepared.train, prepared.train_labels, levels)
    test = _table(prepared.test, prepared.test_labels, levels)
    write_rows(files, train, test, metadata, contract(prepared.shape, levels))


def _table(tokens: np.ndarray, labels: np.ndarray | None, levels: int) -> pa.Table:
    label = pa.nulls(len(tokens), pa.int32()) if labels is None else pa.array(labels, pa.int32())
    return pa.table({"tokens": token_column(tokens, levels), "label": label})
