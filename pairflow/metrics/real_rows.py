"""Real token rows, which samples of text and of token rows are compared with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.errors import InputError


@dataclass(frozen=True)
class RealRows:
    """The training rows (M, N) and the held-out rows (V, N) that samples are compared with."""

    train: np.ndarray
    held_out: np.ndarray
    path: Path
    metadata: Metadata
    inputs: dict[str, str]

    @classmethod
    def read(cls, train: Path, validation: Path) -> "RealRows":
        """Read the files; InputError unless they are the two parts of one data set."""
        (rows, metadata), (others, held_out) = (read_table(path, "tokens") for path in (train, validation))
        metadata.require_same_vocabulary(held_out.vocabulary, train, validation)
        metadata.require_same_data(held_out.data, train, validation)
        metadata.require_split("train", train)
        held_out.require_split("validation", validation)
        if not len(others):
            raise InputError(f"{validation}: holds no rows; samples are compared with held-out rows")
        inputs = {"tokens": digest(train), "validation": digest(validation)}
        return cls(token_array(rows["tokens"]), token_array(others["tokens"]), train, metadata, inputs)

    def read_samples(self, path: Path) -> tuple[np.ndarray, np.ndarray, Metadata]:
        """Samples (B, N) of a model of these data, the trial of each, and their metadata."""
        table, metadata = read_table(path, "samples")
        metadata.require_same_data(self.metadata.data, path, self.path)
        if metadata.dimensions != self.metadata.dimensions:
            raise InputError(
                f"{path}: expected (N, K) = {self.metadata.dimensions} as in {self.path}, "
                f"found {metadata.dimensions}"
            )
        return token_array(table["tokens"]), table["trial"].to_numpy(), metadata
