"""How much data an experiment has: of its token rows where they are made, else as is known of the source."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from pairflow.artifacts import read_table
from pairflow.config import Experiment
from pairflow.data.sources import source_of
from pairflow.plan import paths


@dataclass(frozen=True)
class Sizes:
    """Training and validation rows of N tokens over K symbols, and the shape of images.

    `tokens` is the file of the training rows, None where there is none yet.
    """

    rows: int
    validation_rows: int
    length: int
    vocabulary_size: int
    shape: tuple[int, int, int] | None = None
    tokens: Path | None = None


def sizes(root: Path, experiment: Experiment, folder: Path, progress: bool = True) -> Sizes:
    """The sizes of an experiment's data; a user's own file is read once, in `folder` unless it is absolute.

    Raises InputError where that cannot be.
    """
    path = paths.data(root, "train.parquet")
    if path.is_file() and paths.data(root, "validation.parquet").is_file():
        _, metadata = read_table(path, "tokens")
        return Sizes(
            rows=pq.read_metadata(path).num_rows,
            validation_rows=pq.read_metadata(paths.data(root, "validation.parquet")).num_rows,
            length=metadata.length,
            vocabulary_size=metadata.vocabulary_size,
            shape=tuple(metadata.shape) if metadata.shape else None,
            tokens=path,
        )
    size = source_of(experiment.data, folder).measure(experiment.data, progress)
    return Sizes(size.rows, size.validation_rows, size.length, size.vocabulary_size, size.shape)
