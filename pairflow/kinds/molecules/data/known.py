"""The molecules of a data set as hashes, which are small enough to be stored with every model.

A hash has eight bytes: against a million molecules, one new molecule in 10^13 is mistaken for a known one.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pairflow.artifacts import read_table

KNOWN = "known molecules"


@dataclass(frozen=True, eq=False)
class KnownMolecules:
    """A set of molecules, for the operator `in`, by the texts that identify them, such as canonical SMILES.
    It keeps only `hashes` of the texts (uint64, sorted, distinct)."""

    hashes: np.ndarray

    @classmethod
    def from_smiles(cls, smiles: Iterable[str]) -> "KnownMolecules":
        return cls(np.unique(np.fromiter(map(hash_text, smiles), np.uint64)))

    def __contains__(self, smiles: str) -> bool:
        query = np.uint64(hash_text(smiles))
        index = np.searchsorted(self.hashes, query)
        return bool(index < len(self.hashes) and self.hashes[index] == query)

    @property
    def table(self) -> pa.Table:
        return pa.table({"hash": self.hashes})

    @classmethod
    def load(cls, path: str | Path) -> "KnownMolecules":
        """Read the table of hashes in the file `path`. Raises InputError if it is missing or has other
        content."""
        table, _ = read_table(Path(path), KNOWN)
        return cls(table["hash"].to_numpy())


def hash_text(text: str) -> int:
    """Return a hash of a text as an integer: eight bytes of BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
