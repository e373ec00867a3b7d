"""How much data an experiment has: of its token rows where they are made, else as is known of the source."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from pairflow.artifacts import read_table
from pairflow.config import Experiment, Images, Molecules
from pairflow.errors import InputError
from pairflow.plan import paths

# Rows for training and for validation, and K at the lengths of workflow_config.yaml: as preprocessing found.
_KNOWN = {
    "small_molecules": (7_561, 398, 24),
    "qm9": (127_190, 6_694, 40),
    "zinc250k": (224_568, 24_887, 72),
    "digits": (1_617, 180, 2),
    "mnist_binary": (60_000, 10_000, 2),
    "cifar10": (50_000, 10_000, 256),
}
_SHAPES = {"digits": (1, 8, 8), "mnist_binary": (1, 28, 28), "cifar10": (3, 32, 32)}


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
    data = experiment.data
    if data.source in _KNOWN:
        return _published(data)
    return _own_images(data, folder) if isinstance(data, Images) else _own_molecules(data, folder, progress)


def _published(data: Molecules | Images) -> Sizes:
    rows, validation_rows, size = _KNOWN[data.source]
    rows = min(rows, data.training_rows or rows) * (2 if getattr(data, "flips", False) else 1)
    shape = _SHAPES.get(data.source)
    length = shape[0] * shape[1] * shape[2] if shape else data.length
    return Sizes(rows, validation_rows, length, size, shape)


def _own_images(data: Images, folder: Path) -> Sizes:
    from pairflow.data import images

    paths = images.files(folder / data.folder)
    height, width, channels = images.read_image(paths[0], data.size, data.mode).shape
    validation_rows = int(len(paths) * data.validation_fraction)
    rows = min(len(paths) - validation_rows, data.training_rows or len(paths)) * (2 if data.flips else 1)
    shape = (channels, height, width)
    return Sizes(rows, validation_rows, channels * height * width, data.levels or 256, shape)


def _own_molecules(data: Molecules, folder: Path, progress: bool) -> Sizes:
    from pairflow.data import library
    from pairflow.data.survey import survey

    found = survey(library.rows(folder / data.source, data.column, progress), data.standardisation)
    fitting = int((found.lengths <= data.length).sum())
    total = fitting if data.drop_duplicates else fitting + found.duplicates
    if not total:
        raise InputError(f"{data.source}: no molecule fits {data.length} tokens")
    validation_rows = int(total * data.validation_fraction)
    rows = min(total - validation_rows, data.training_rows or total)
    return Sizes(rows, validation_rows, data.length, found.vocabulary_size(data.length))
