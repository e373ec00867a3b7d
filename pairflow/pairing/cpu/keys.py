"""The data points as the CPU engine holds them: sorted, without constant columns, in up to three layouts.

Memory, for M keys of N tokens (1 byte each up to K = 256, else 2): the tokens, the index of `bitmaps` (at
most 1 GiB, else the tokens once more), for K = 2 and long rows M N / 8 bytes more, and while they are built
two further copies of the tokens.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu import bitmaps
from pairflow.pairing.cpu.block import BITS, zero_blocks

_LANES = 32  # token rows are padded to a multiple, so that no row ends in single steps
_PACKING_GAIN = 3  # packed rows are used where they are this many times smaller than rows of tokens


class Keys(NamedTuple):
    """M keys with A varying columns. A constant column shifts all distances alike: it never decides a level.

    `columns` (A,) are the varying columns' places, `constants` (N,) the symbol of a column that does not vary
    (-1: it does). `tokens` (M, A') are the varying columns, padded; `packed` (M, blocks, 8) the same in
    one bit each, for K = 2, or empty (0, ...) where that does not pay.
    """

    number: int
    columns: np.ndarray
    constants: np.ndarray
    tokens: np.ndarray
    packed: np.ndarray
    bitmaps: bitmaps.Bitmaps


def prepare(data: np.ndarray, vocabulary_size: int) -> Keys:
    """The keys of `data` (M, N), unsigned."""
    constants = np.where((data == data[0]).all(axis=0), data[0].astype(np.int64), -1)
    varying = np.flatnonzero(constants < 0)
    if not len(varying):
        constants[0], varying = -1, np.array([0])
    tokens = data[sorted_rows(data)][:, varying]
    return Keys(
        number=len(data),
        columns=varying,
        constants=constants,
        tokens=padded_rows(tokens),
        packed=_packed(tokens, vocabulary_size),
        bitmaps=bitmaps.build(np.ascontiguousarray(tokens.T), vocabulary_size),
    )


def sorted_rows(data: np.ndarray) -> np.ndarray:
    """An order of the rows in which those that end alike stand together: by length, then by their tails."""
    reversed_rows = np.ascontiguousarray(data[:, ::-1])
    return np.argsort(reversed_rows.view(f"V{data.itemsize * data.shape[1]}")[:, 0], kind="stable")


def padded_rows(tokens: np.ndarray) -> np.ndarray:
    """Rows lengthened by zeros to a multiple of `_LANES`."""
    length = -(-tokens.shape[1] // _LANES) * _LANES
    padded = np.zeros((len(tokens), length), tokens.dtype)
    padded[:, : tokens.shape[1]] = tokens
    return padded


def _packed(tokens, vocabulary_size):
    blocks = -(-tokens.shape[1] // BITS)
    if vocabulary_size > 2 or tokens.shape[1] < _PACKING_GAIN * blocks * BITS // 8:
        return zero_blocks(0, blocks)
    packed = zero_blocks(len(tokens), blocks)
    flat = np.packbits(tokens, axis=1, bitorder="little")
    packed.reshape(len(tokens), -1).view(np.uint8)[:, : flat.shape[1]] = flat
    return packed
