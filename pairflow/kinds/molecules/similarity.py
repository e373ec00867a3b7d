"""Tanimoto similarity of molecules by their Morgan fingerprints, exact, against whole training sets.

The fingerprint is RDKit's: Morgan, radius 2 (ECFP4), 2,048 bits, packed into 32 words of 64 bits. The
Tanimoto similarity of two bit sets a and b is |a & b| / |a | b|.
"""

from collections.abc import Iterable

import numpy as np

from pairflow.pairing.cpu import block
from pairflow.pairing.cpu.block import load, plus, popcount, total
from pairflow.pairing.cpu.compiled import compiled

BITS = 2048
WORDS = BITS // 64
_BLOCKS = BITS // block.BITS


@compiled
def _common(one: np.ndarray, i: int, other: np.ndarray, j: int) -> int:
    """Bits that row `i` of `one` and row `j` of `other` share; both are contiguous (rows, 32) uint64."""
    first, second = i * _BLOCKS, j * _BLOCKS
    bits = popcount(load(one, first) & load(other, second))
    for k in range(1, _BLOCKS):
        bits = plus(bits, popcount(load(one, first + k) & load(other, second + k)))
    return total(bits)


@compiled
def _nearest(
    samples: np.ndarray,
    sizes: np.ndarray,
    reference: np.ndarray,
    starts: np.ndarray,
    best: np.ndarray,
    rows: np.ndarray,
) -> None:
    """`best[i]`: the largest similarity of samples[i] to a reference row; `rows[i]`: a row with it.

    Sizes a <= b bound the similarity by a / b (Swamidass and Baldi 2007): the search starts at rows of the
    sample's own size, as the reference is in order of size, and goes outwards until the bound is no larger
    than the similarity found so far.
    """
    largest = len(starts) - 2
    for i in range(len(samples)):
        size, highest, nearest = sizes[i], 0.0, -1
        for away in range(max(size, largest - size) + 1 if size else 0):
            below, above = size - away, size + away
            if (size / above if above <= largest else below / size) <= highest:
                break
            for other in (below, above) if away else (size, -1):
                if other < 0 or other > largest:
                    continue
                for row in range(starts[other], starts[other + 1]):
                    common = _common(samples, i, reference, row)
                    similarity = common / (size + other - common)
                    if similarity > highest:
                        highest, nearest = similarity, row
        best[i], rows[i] = highest, nearest


@compiled
def _sums_of_pairs(rows: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """Sums of the similarities, and of their squares."""
    total, squares = 0.0, 0.0
    for i in range(len(rows)):
        for j in range(i):
            common = _common(rows, i, rows, j)
            similarity = common / (sizes[i] + sizes[j] - common)
            total += similarity
            squares += similarity * similarity
    return total, squares


def compile_all() -> None:
    """Compile all of this module, or read its machine code from disk, so that it costs no time later."""
    empty = np.zeros((2, WORDS), np.uint64)
    Neighbours(empty).similarity(empty)
    internal_diversity(empty + np.uint64(1))


class Neighbours:
    """Reference molecules among which the nearest is looked up: packed fingerprints (M, 32) uint64."""

    def __init__(self, fingerprints: np.ndarray):
        sizes = _sizes(fingerprints)
        self._order = np.argsort(sizes, kind="stable")
        self._rows = np.ascontiguousarray(fingerprints[self._order])
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(sizes, minlength=BITS + 1))])

    def similarity(self, fingerprints: np.ndarray) -> np.ndarray:
        """(B,) float64: the largest Tanimoto similarity of each of (B, 32) to a reference molecule; 1 for one
        of these, or one that its fingerprint does not tell from such."""
        return self.nearest(fingerprints)[0]

    def nearest(self, fingerprints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same similarities (B,), and the rows (B,) of the most similar molecules, -1 where they are
        0."""
        best, rows = np.empty(len(fingerprints)), np.empty(len(fingerprints), np.int64)
        samples = np.ascontiguousarray(fingerprints)
        _nearest(samples, _sizes(samples), self._rows, self._starts, best, rows)
        return best, np.where(rows < 0, -1, np.append(self._order, -1)[rows])


def internal_diversity(fingerprints: np.ndarray) -> float:
    """1 - the mean Tanimoto similarity over pairs of different rows of (B, 32); NaN for fewer than two."""
    return 1 - _means_of_pairs(fingerprints)[0]


def root_mean_square_diversity(fingerprints: np.ndarray) -> float:
    """1 - the root of the mean square of the same; MOSES' IntDiv2, without pairs of a row and itself."""
    return 1 - float(np.sqrt(_means_of_pairs(fingerprints)[1]))


def _means_of_pairs(fingerprints: np.ndarray) -> tuple[float, float]:
    """Means of the similarity and of its square; NaN for fewer than two rows."""
    pairs = len(fingerprints) * (len(fingerprints) - 1) / 2
    rows = np.ascontiguousarray(fingerprints)
    total, squares = _sums_of_pairs(rows, _sizes(rows))
    return (total / pairs, squares / pairs) if pairs else (np.nan, np.nan)


def unpack(fingerprints: Iterable[bytes]) -> np.ndarray:
    """(M, 32) uint64: fingerprints of 256 bytes each."""
    return np.frombuffer(b"".join(fingerprints), np.uint64).reshape(-1, WORDS)


def _sizes(fingerprints: np.ndarray) -> np.ndarray:
    return np.bitwise_count(fingerprints).sum(axis=1, dtype=np.int64)
