"""How much data an experiment has: of its token rows where they are made, else as is known of the source."""

from pathlib import Path

import pyarrow.parquet as pq

from pairflow.artifacts import read_table
from pairflow.config import Experiment
from pairflow.data.source import DatasetSize
from pairflow.kinds import source_of
from pairflow.plan import paths


def sizes(root: Path, experiment: Experiment, folder: Path, progress: bool = True) -> DatasetSize:
    """The sizes of an experiment's data; a user's own file is read once, in `folder` unless it is absolute.

    Raises InputError where that cannot be.
    """
    train, validation = (paths.data(root, f"{split}.parquet") for split in ("train", "validation"))
    if not (train.is_file() and validation.is_file()):
        return source_of(experiment.data, folder).measure(experiment.data, progress)
    _, metadata = read_table(train, "tokens", "vectors")
    length, vocabulary_size = metadata.length or 0, metadata.vocabulary_size or 0
    rows, held_out = (pq.read_metadata(path).num_rows for path in (train, validation))
    shape = tuple(metadata.shape) if metadata.shape else None
    return DatasetSize(rows, held_out, vocabulary_size, length, shape)
