"""The sizes of an experiment's data: of the rows that are made, or of their source."""

from pathlib import Path

import pyarrow.parquet as pq

from pairflow.artifacts import read_metadata
from pairflow.config import Experiment
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.kinds import source_of
from pairflow.plan import paths


def sizes(root: Path, experiment: Experiment, folder: Path) -> DatasetSize:
    """Read the sizes of an experiment's data, from its rows if they are made, else from its source.

    A user's own file, whose path starts at `folder` unless it is absolute, is read once. Raises InputError if
    it cannot be read.
    """
    files = [paths.data(root, f"{split}.parquet") for split in ("train", "validation")]
    if not all(file.is_file() for file in files):
        return source_of(experiment.data, folder).measure(experiment.data)
    made, (rows, held_out) = read_metadata(files[0]), (pq.read_metadata(file).num_rows for file in files)
    shape = tuple(made.shape) if made.shape else None
    return DatasetSize(rows, held_out, made.vocabulary_size or 0, made.length or 0, shape)


def about(root: Path, experiment: Experiment) -> DatasetSize:
    """Return the sizes of an experiment's data, without reading raw files: sizes that only these would tell
    are guessed."""
    try:
        if paths.data(root, "validation.parquet").is_file():
            return sizes(root, experiment, Path())
    except InputError:  # preprocessing makes the files again
        pass
    return source_of(experiment.data).guess(experiment.data)
