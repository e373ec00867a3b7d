"""Packed files, of which no more is unpacked than data have: a few bytes can stand for gigabytes."""

import gzip
from pathlib import Path
from typing import Any

from pairflow.errors import InputError

RATIO = 100  # of the sizes unpacked and packed; 100,000 equal rows in an Excel file have 14
FREE = 2**24  # bytes that any file may unpack to


def require_plausible(path: Path, unpacked: int) -> None:
    """InputError if a packed file unpacks to more bytes than data do."""
    size = path.stat().st_size
    if unpacked > max(FREE, RATIO * size):
        raise InputError(
            f"{path}: expected a file that unpacks to at most {RATIO} times its {size:,} bytes, found "
            f"{unpacked:,} or more"
        )


class GzipFile(gzip.GzipFile):
    """The unpacked bytes of a gzipped file; InputError once they are more than data have."""

    def __init__(self, path: Path, raw: Any):
        super().__init__(fileobj=raw)
        self.path = path

    def read1(self, size: int = -1) -> bytes:
        content = super().read1(size)
        require_plausible(self.path, self.tell())
        return content


def gunzip(path: Path) -> bytes:
    """The unpacked content of a gzipped file; InputError as `require_plausible`."""
    with path.open("rb") as raw, GzipFile(path, raw) as packed:
        return b"".join(iter(lambda: packed.read1(FREE), b""))
