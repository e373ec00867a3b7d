"""Random numbers as a pure function of (seed, row, step, position), equal on every machine.

The generator Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") maps

    key     = (seed mod 2^32, seed div 2^32)
    counter = (position, step, row mod 2^32, row div 2^32)

to four 32-bit words. Words 0 and 1 make the uniform number ((w0 + 2^32 w1) >> 11) * 2^-53 in
[0, 1), and word 2 makes the choice (w2 * n) >> 32 in [0, n). Words 2 and 3 can make a second uniform number.

The step separates the uses. Algorithm 1 uses steps T..1. Step 0 is for rows of uniform tokens
(positions below N) and for random orders of rows (position 2^32 - 1), step 2^32 - 1 for normal numbers, and
step 2^32 - 2 for the draws of semidiscrete transport (the position is the number of the draw).

`philox4x32`, `uniform`, `choose` and `split` take uint64 arrays under NumPy and uint64 scalars under Numba,
which compiles them unchanged.
"""

import hashlib
import json
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_SPARE_BITS = np.uint64(11)  # a float64 holds 53 of 64 bits
_CHUNK = 1 << 20  # counters in memory at once
_ORDER_POSITION = np.uint64(0xFFFFFFFF)
_NORMAL_STEP = 0xFFFFFFFF

Word = Any  # uint64, a scalar or an array: NumPy and Numba both run these functions


def philox4x32(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> tuple[Word, Word, Word, Word]:
    """Return four random words for the counter (c0, c1, c2, c3) and the key (k0, k1): ten rounds of Philox.

    All values are uint64 below 2^32; arrays broadcast.
    """
    for _ in range(10):
        product_0 = _MULTIPLIER_0 * c0
        product_1 = _MULTIPLIER_1 * c2
        c0, c2 = (product_1 >> _HALF) ^ c1 ^ k0, (product_0 >> _HALF) ^ c3 ^ k1
        c1, c3 = product_1 & _MASK, product_0 & _MASK
        k0 = (k0 + _WEYL_0) & _MASK
        k1 = (k1 + _WEYL_1) & _MASK
    return c0, c1, c2, c3


def uniform(w0: Word, w1: Word) -> Word:
    """Return the float64 ((w0 + 2^32 w1) >> 11) * 2^-53 in [0, 1)."""
    return ((w0 | (w1 << _HALF)) >> _SPARE_BITS) * 2.0**-53


def choose(word: Word, n: Word) -> Word:
    """Return the integer (word * n) >> 32 in [0, n), for a uint64 `n` of at most 2^32."""
    return (word * n) >> _HALF


def split(number: Word) -> tuple[Word, Word]:
    """Return the low and the high 32 bits of a uint64."""
    return number & _MASK, number >> _HALF


def draws(seed: int, rows: ArrayLike, step: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the random numbers of one step: uniforms (B, N) float64, and words (B, N) uint64 for `choose`.

    `rows` (B,) are the numbers of the rows in the whole data set, and `length` is N. Other uses of random
    numbers have another `step`.
    """
    positions = np.arange(length, dtype=np.uint64)
    w0, w1, w2, _ = _words(seed, rows, step, positions)
    return uniform(w0, w1), w2


def two_uniforms(seed: int, rows: ArrayLike, step: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two independent uniform numbers for each position, each (B, N) float64. Arguments are as in
    `draws`, which returns the first."""
    w0, w1, w2, w3 = _words(seed, rows, step, np.arange(length, dtype=np.uint64))
    return uniform(w0, w1), uniform(w2, w3)


def uniform_tokens(seed: int, rows: ArrayLike, length: int, vocabulary_size: int) -> np.ndarray:
    """Draw rows of noise x0 (B, N), uniform over the K^N rows and independent of data: the coupling `random`.

    `rows` (B,) are the numbers of the rows, `length` is N, `vocabulary_size` is K. The dtype is the smallest
    unsigned integer that holds K - 1.
    """
    rows = np.asarray(rows, dtype=np.uint64)
    tokens = np.empty((len(rows), length), dtype=np.min_scalar_type(vocabulary_size - 1))
    size = max(1, _CHUNK // length)
    for start in range(0, len(rows), size):
        _, words = draws(seed, rows[start : start + size], 0, length)
        tokens[start : start + size] = choose(words, np.uint64(vocabulary_size))
    return tokens


def normals(seed: int, rows: ArrayLike, length: int) -> np.ndarray:
    """Draw rows of noise x0 (B, d) for continuous data: float32 from N(0, I), with d = `length`.

    `rows` (B,) are row numbers. Of the generator's four words, 0 and 1 make u and 2 and 3 make v, both in [0,
    1); the method of Box and Muller makes two numbers in float64: sqrt(-2 log(1 - u)) cos(2 pi v) at position
    j, and the same with sin at position j + ceil(d / 2). Mathematical libraries differ in the last bit, so
    that after rounding to float32 about one number in 10^8 may differ between machines.
    """
    rows = np.asarray(rows, dtype=np.uint64)
    half = -(-length // 2)
    positions = np.arange(half, dtype=np.uint64)
    numbers = np.empty((len(rows), length), dtype=np.float32)
    size = max(1, _CHUNK // half)
    for start in range(0, len(rows), size):
        chunk = slice(start, start + size)
        w0, w1, w2, w3 = _words(seed, rows[chunk], _NORMAL_STEP, positions)
        radius = np.sqrt(-2 * np.log1p(-uniform(w0, w1)))  # of 1 - u, which is never 0
        angle = 2 * np.pi * uniform(w2, w3)
        numbers[chunk, :half] = radius * np.cos(angle)
        numbers[chunk, half:] = (radius * np.sin(angle))[:, : length - half]
    return numbers


def random_order(seed: int, count: int) -> np.ndarray:
    """Return a random permutation (count,) int64 of 0..count-1: it sorts one random 64-bit number per row."""
    w0, w1, *_ = _words(seed, np.arange(count), 0, _ORDER_POSITION)
    return np.argsort((w0 | (w1 << _HALF))[:, 0], kind="stable")


def stream_seed(*labels: str | int) -> int:
    """Hash labels (SHA-256) to a 63-bit seed for another generator, as in `stream_seed(seed, "train", 7)`."""
    names = [label if isinstance(label, str) else operator.index(label) for label in labels]
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # 63 bits fit into a signed integer


def _words(seed: int, rows: ArrayLike, step: int, positions: Word) -> tuple[Word, Word, Word, Word]:
    low, high = split(np.asarray(rows, dtype=np.uint64)[:, None])
    return philox4x32(positions, np.uint64(step), low, high, *split(np.uint64(seed)))
