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
    shape: tuple[int, ...] | None = None
    tokens: Path | None = None


def sizes(root: Path, experiment: Experiment, folder: Path, progress: bool = True) -> Sizes:
    """The sizes of an experiment's data; a user's own file is read once, in `folder` unless it is absolute.

    Raises InputError where that cannot be.
    """
    path, validation = (paths.data(root, f"{split}.parquet") for split in ("train", "validation"))
    if path.is_file() and validation.is_file():
        _, metadata = read_table(path, "tokens")
        rows, held_out = (pq.read_metadata(file).num_rows for file in (path, validation))
        shape = tuple(metadata.shape) if metadata.shape else None
        return Sizes(rows, held_out, *metadata.dimensions, shape, path)
    size = source_of(experiment.data, folder).measure(experiment.data, progress)
    return Sizes(size.rows, size.validation_rows, size.length, size.vocabulary_size, size.shape)
