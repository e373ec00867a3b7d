"""What all sources of data have in common."""

import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path

from pairflow.config import DataSettings
from pairflow.data.status import Finding
from pairflow.kinds.images.files import Shape
from pairflow.kinds.images.settings import Images


@dataclass(frozen=True)
class DatasetSize:
    """Rows for training and for validation, K symbols, N tokens per row, and (C, H, W) of images."""

    rows: int
    validation_rows: int
    vocabulary_size: int
    length: int = 0  # of molecules, whose experiments choose N
    shape: tuple[int, ...] | None = None

    @classmethod
    def for_images(cls, rows: int, validation_rows: int, levels: int, shape: Shape) -> "DatasetSize":
        return cls(rows, validation_rows, levels, shape[0] * shape[1] * shape[2], shape)

    @property
    def total(self) -> int:
        return self.rows + self.validation_rows

    def limited(self, settings: DataSettings) -> "DatasetSize":
        """The size of what an experiment trains on."""
        rows = min(self.rows, settings.training_rows or self.rows)
        if isinstance(settings, Images):
            return replace(self, rows=rows * (2 if settings.flips else 1))
        return replace(self, rows=rows, length=getattr(settings, "length", self.length))


class DataSource(ABC):
    """One data set; `size` is None where it is not known before the files have been read."""

    name: str
    size: DatasetSize | None = None

    def measure(self, settings: DataSettings, progress: bool = True) -> DatasetSize:
        """The size of what an experiment trains on; files are read for it if it is not known in advance."""
        assert self.size is not None
        return self.size.limited(settings)

    @abstractmethod
    def status(self, offline: bool = False, torchvision: bool = True) -> Finding:
        """Whether the data are here and whole, or can be downloaded, and what to do if not.

        `offline`: do not use the network; `torchvision`: whether that package can be imported.
        """


def broken_copy(path: Path, problem: str) -> Finding:
    """A copy that the workflow would refuse; without it, the data are downloaded again."""
    text = problem if str(path) in problem else f"{path}: {problem}"
    return Finding.attention(text, f"rm -r {quoted(path)}")


def quoted(path: Path) -> str:
    return shlex.quote(str(path))
