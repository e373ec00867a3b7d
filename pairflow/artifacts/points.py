"""Rows of a file as points of a continuous flow: vectors as they are, grey levels as numbers from -1 to 1."""

import numpy as np
import pyarrow as pa

from pairflow.artifacts.tables import Metadata, token_array, token_dtype
from pairflow.errors import InputError


def to_points(tokens: np.ndarray, levels: int) -> np.ndarray:
    """Token rows as numbers from -1 (black) to 1 (white), float32: pixels of continuous flows."""
    return tokens.astype(np.float32) * np.float32(2 / (levels - 1)) - np.float32(1)


def from_points(points: np.ndarray, levels: int) -> np.ndarray:
    """The nearest token of each number: the way back from `to_points`; numbers beyond -1 and 1 are cut."""
    tokens = np.rint((points.clip(-1, 1) + 1) * ((levels - 1) / 2))
    return tokens.astype(token_dtype(levels))


def points_of(table: pa.Table, metadata: Metadata) -> np.ndarray:
    """The rows (M, ...) float32 of a table of vectors, or of images as numbers (M, C, H, W)."""
    if metadata.kind == "vectors":
        return token_array(table["values"])
    if metadata.shape is None:
        raise InputError("a continuous flow needs vectors or images, found token rows")
    tokens = token_array(table["tokens"])
    return to_points(tokens, metadata.dimensions[1]).reshape(-1, *metadata.shape)
