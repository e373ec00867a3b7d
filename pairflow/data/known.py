"""The molecules that a data set knows, as hashes: small enough to travel with every model.

Each is eight bytes, BLAKE2b of the canonical SMILES: against a million known molecules one new molecule in
10^13 passes for known.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pairflow.artifacts import Metadata, read_table, write_table

_KIND = "known molecules"


class Known:
    """A set of canonical SMILES of which only `in` can be asked. `hashes` are uint64, sorted and distinct."""

    def __init__(self, hashes: np.ndarray):
        self.hashes = hashes

    @classmethod
    def of(cls, smiles: Iterable[str]) -> "Known":
        return cls(np.unique(np.array([_hash(text) for text in smiles], np.uint64)))

    def __contains__(self, smiles: str) -> bool:
        wanted = np.uint64(_hash(smiles))
        place = np.searchsorted(self.hashes, wanted)
        return bool(place < len(self.hashes) and self.hashes[place] == wanted)

    def __len__(self) -> int:
        return len(self.hashes)

    def save(self, file: Any, **metadata: Any) -> None:
        """Write a Parquet file under a path or into an open file; `metadata` is more of its metadata."""
        write_table(file, pa.table({"hash": self.hashes}), Metadata(kind=_KIND, **metadata))

    @classmethod
    def load(cls, path: str | Path) -> "Known":
        """Read what `save` wrote; InputError if the file is missing or holds anything else."""
        table, _ = read_table(Path(path), _KIND)
        return cls(table["hash"].to_numpy())


def _hash(smiles: str) -> int:
    return int.from_bytes(hashlib.blake2b(smiles.encode(), digest_size=8).digest(), "little")
