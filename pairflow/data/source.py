"""The interface of data sets before preprocessing, and data sets in a user's own files and folders."""

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pairflow.config import DataSettings
from pairflow.data.status import Finding
from pairflow.errors import InputError
from pairflow.files import is_hidden

if TYPE_CHECKING:
    from pairflow.data.download import RawFile


_OTHERS = 100_000  # files and folders below a user's folder that are not of the right kind


@dataclass(frozen=True)
class DatasetSize:
    """The size of a data set.

    It has the numbers of training and validation rows, K symbols (0 for real numbers), N tokens or numbers
    per row, and the shape (C, H, W) of images.
    """

    rows: int
    validation_rows: int
    vocabulary_size: int
    length: int = 0  # until an experiment chooses N
    shape: tuple[int, ...] | None = None

    @classmethod
    def shaped(
        cls, rows: int, validation_rows: int, vocabulary_size: int, shape: tuple[int, ...]
    ) -> "DatasetSize":
        """Return the size of a data set of images, whose `shape` determines N."""
        return cls(rows, validation_rows, vocabulary_size, math.prod(shape), shape)

    @property
    def total(self) -> int:
        return self.rows + self.validation_rows

    def limited(self, settings: DataSettings) -> "DatasetSize":
        """Return the size of the part of this data set that an experiment with these settings trains on."""
        length = getattr(settings, "length", None) or self.length
        return replace(self, rows=settings.count_rows(self.rows), length=length)

    def scaled(self, rows: int | None) -> "DatasetSize":
        """Return the size of a similar data set with so many training rows; the same size for None."""
        if rows is None:
            return self
        return replace(self, rows=rows, validation_rows=self.validation_rows * rows // self.rows)

    @property
    def row_bytes(self) -> float:
        """About how many bytes a row takes on disk: a row of random tokens, or of float32 numbers."""
        return (
            self.length * math.log2(self.vocabulary_size) / 8 if self.vocabulary_size else 4.0 * self.length
        )


class DataSource(ABC):
    """A data set that can be read. `size` is None if it is unknown before the files are read."""

    name: str
    size: DatasetSize | None = None

    @abstractmethod
    def read(self, settings: Any) -> Any:
        """Read the data. Returns an object with training rows (`train`), held-out rows (`validation`) and K
        (`symbols`)."""

    def measure(self, settings: Any) -> DatasetSize:
        """Return the size of the part that an experiment trains on; files are read if `size` is not known."""
        if self.size is not None:
            return self.size.limited(settings)
        rows = self.read(settings)
        return DatasetSize(len(rows.train), len(rows.validation), rows.symbols, rows.train.shape[1])

    def guess(self, settings: Any) -> DatasetSize:
        """Return about the size of the part that an experiment with these data settings trains on, without
        reading files. If the size is unknown, rows of 30 bytes and 64 symbols are assumed."""
        if self.size is not None:
            return self.size.limited(settings)
        with suppress(AttributeError, OSError):
            rows = self.path.stat().st_size // 30  # type: ignore[attr-defined]
            symbols = getattr(settings, "vocabulary_size", None) or 64
            return DatasetSize(max(1, rows), rows // 10, symbols, 64).limited(settings)
        return DatasetSize(10**5, 10**4, 64, 64).limited(settings)

    def published_files(self) -> "list[RawFile]":
        """Return the files that `status` looks for; empty for data that pairflow makes or contains."""
        return []

    def status(self, offline: bool = False) -> Finding:
        """Return whether the data are here or, unless `offline`, can be downloaded, and what to do if not."""
        from pairflow.data.download import published_status

        return published_status(self.published_files(), offline)


@dataclass(frozen=True)
class RowFile(DataSource):
    """A user's own file of rows, or a folder of such files."""

    path: Path
    what: ClassVar[str] = "file"

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.path.name

    def fetch(self) -> Path:
        return self.path

    def status(self, offline: bool = False) -> Finding:
        if self.path.is_dir() if self.what == "folder" else self.path.is_file() and self.path.stat().st_size:
            return Finding.ok(str(self.path))
        return Finding.attention(
            f"{self.path}: no such {self.what}, or it is empty", f"ls -l {self.path.parent}"
        )


@dataclass(frozen=True)
class PublishedFile(DataSource):
    """A data set in one file: a part of the package, a download, or a copy in PAIRFLOW_DATA_DIR."""

    name: str
    file: "RawFile"

    def fetch(self) -> Path:
        """Find or download the file, and return its path."""
        return self.file.fetch()

    def published_files(self) -> "list[RawFile]":
        return [self.file]


def files(
    folder: str | Path, name: str, suffixes: Collection[str], left_out: dict[str, str] | None = None
) -> list[Path]:
    """Return the files with these suffixes below a folder, sorted by their path in it.

    Other files, hidden and linked folders, and hidden files with these suffixes are added to `left_out`:
    their paths in the folder, and the reasons. Raises InputError if no file has such a suffix, or if there
    are so many others that it must be the wrong folder, such as `/`; the message calls the wanted ones `name`
    files.
    """
    root, paths, others = Path(folder), list[Path](), 0
    if not root.is_dir():
        raise InputError(f"{folder}: no such folder")
    left_out = {} if left_out is None else left_out
    for place, folders, names in os.walk(root):
        reasons = {each: "a link to a folder" for each in folders if Path(place, each).is_symlink()}
        reasons |= dict.fromkeys(filter(is_hidden, folders), "hidden")
        folders[:] = sorted({*folders} - {*reasons})
        found = {each for each in names if Path(each).suffix.lower() in suffixes}
        reasons |= dict.fromkeys(filter(is_hidden, found), "hidden")
        reasons |= {each: f"not {name}" for each in {*names} - found if not is_hidden(each)}
        for each, reason in sorted(reasons.items()):
            left_out[Path(place, each).relative_to(root).as_posix()] = reason
        visible = [Path(place, each) for each in found if not is_hidden(each)]
        paths += [path for path in visible if path.is_file()]
        others += 1 + len(names) - len(found)
        if others > max(_OTHERS, 10 * len(paths)):
            raise InputError(
                f"{folder}: expected a folder of {name} files, found {len(paths):,} such files among "
                f"{others:,} others"
            )
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    if not paths:
        raise InputError(f"{folder}: no {name} files below it")
    return paths


def listing(folder: str | Path, name: str, suffixes: Collection[str]) -> str:
    """Return a digest of names, sizes and times of the `files` with these suffixes below a folder, to notice
    changes; empty if there are none."""
    try:
        paths = files(folder, name, suffixes)
    except InputError:  # which the step reports
        return ""
    content = hashlib.sha256()
    for path in paths:
        status = path.stat()
        content.update(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return content.hexdigest()
