"""A user's own pairs, checked against the data that an experiment trains on."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.errors import InputError


class OwnPairs(NamedTuple):
    """A user's pairs of sources x0 and training rows x1, both (P, N).

    `held_out` counts pairs that were left out because their x1 is a held-out row, and `unpaired` the training
    rows without a pair. `metadata` comes from the training rows, and `inputs` has the hashes of the files.
    """

    x0: np.ndarray
    x1: np.ndarray
    held_out: int
    unpaired: int
    metadata: Metadata
    inputs: dict[str, str]


def read_own_pairs(path: Path, tokens: Path, validation: Path) -> OwnPairs:
    """Read a user's pairs, and leave out pairs whose x1 is a held-out row, on which no model may train.

    `tokens` and `validation` are the files of the training and the held-out rows. Training rows may come in
    any order and number. Raises InputError if N or K differ from the data's, or if an x1 is no row of the
    data.
    """
    table, metadata = read_table(path, "pairs")
    (train, data), (held_out, _) = (read_table(file, "tokens") for file in (tokens, validation))
    if metadata.dimensions != data.dimensions:
        raise InputError(
            f"{path}: (N, K) is {metadata.dimensions}, expected {data.dimensions} as in {tokens}"
        )
    if metadata.vocabulary:
        metadata.require_same_vocabulary(data.vocabulary, path, tokens)
    x0, x1 = token_array(table["x0"]), token_array(table["x1"])
    rows, training = _as_scalars(x1), _as_scalars(token_array(train["tokens"]))
    data_rows = np.concatenate([training, _as_scalars(token_array(held_out["tokens"]))])
    known, strange = np.isin(rows, training), ~np.isin(rows, data_rows)
    if strange.any():
        row = int(np.argmax(strange))
        swapped = np.isin(_as_scalars(x0[row : row + 1]), data_rows).all()
        advice = ", but x0 is one; are x0 and x1 swapped?" if swapped else f"; pair the rows in {tokens}"
        raise InputError(f"{path}: row {row}: x1 is no row of the data{advice}")
    if not known.any():
        raise InputError(f"{path}: no x1 is a training row; pair the rows in {tokens}")
    unpaired = int(np.count_nonzero(~np.isin(training, rows)))
    inputs = {"own": digest(path), "tokens": digest(tokens), "validation": digest(validation)}
    return OwnPairs(x0[known], x1[known], int(np.count_nonzero(~known)), unpaired, data, inputs)


def _as_scalars(rows: np.ndarray) -> np.ndarray:
    """Return rows (M, N) of integers as an array (M,) of bytes, so that NumPy compares whole rows."""
    rows = np.ascontiguousarray(rows, dtype=np.int32)
    return rows.view(f"V{rows.dtype.itemsize * rows.shape[1]}").ravel()
