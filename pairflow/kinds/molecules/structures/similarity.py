"""Finds the largest Tanimoto similarity of a molecule to any molecule of a training set, exactly.

The fingerprint of a molecule marks its substructures in bits. It is RDKit's: Morgan, radius 2 (ECFP4), 2,048
bits, packed into 256 bytes. The Tanimoto similarity of two bit sets a and b is |a & b| / |a | b|.
"""

from collections.abc import Iterable

import numpy as np

from pairflow.pairing.cpu import block
from pairflow.pairing.cpu.block import load, plus, popcount, total
from pairflow.pairing.cpu.compiled import compiled

BITS = 2048
_BLOCKS = BITS // block.BITS


@compiled
def _common(one: np.ndarray, i: int, other: np.ndarray, j: int) -> int:
    """Count the bits that row `i` of `one` and row `j` of `other` share. Both arrays are contiguous (rows,
    32) uint64."""
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
    """Fill `best` and `rows`: best[i] is the largest similarity of the fingerprint samples[i] to a row of
    `reference`, and rows[i] is the number of that row, or -1 if the similarity is 0. `sizes` has the number
    of bits of each sample. Fingerprints are (rows, 32) uint64.

    Fingerprints with a <= b bits have at most the similarity a / b (Swamidass and Baldi 2007). Reference rows
    are sorted by their number of bits, and `starts` has the first row of each number. The search begins with
    the sample's number of bits, and ends when the bound is no larger than the best similarity so far.
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
def _sum_of_pairs(rows: np.ndarray, sizes: np.ndarray) -> float:
    """Return the sum of the Tanimoto similarities over pairs of different `rows`, fingerprints (M, 32)
    uint64. `sizes` has the number of bits of each row."""
    total = 0.0
    for i in range(len(rows)):
        for j in range(i):
            common = _common(rows, i, rows, j)
            total += common / (sizes[i] + sizes[j] - common)
    return total


def compile_all() -> None:
    """Compile the functions of this module, or read their machine code from disk, before time is measured."""
    ones = [bytes([1] * (BITS // 8))] * 2
    Neighbours(ones).similarity(ones)
    internal_diversity(ones)


class Neighbours:
    """The reference molecules, given by M fingerprints, among which the one most similar to a molecule is
    found."""

    def __init__(self, fingerprints: Iterable[bytes]):
        rows, sizes = _unpack(fingerprints)
        self._order = np.argsort(sizes, kind="stable")
        self._rows = np.ascontiguousarray(rows[self._order])
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(sizes, minlength=BITS + 1))])

    def similarity(self, fingerprints: Iterable[bytes]) -> np.ndarray:
        """Return the largest similarity (B,), float64, of each of B molecules to a reference molecule. It is
        1 if their fingerprints are the same."""
        return self.nearest(fingerprints)[0]

    def nearest(self, fingerprints: Iterable[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest similarity (B,) of each of B molecules to a reference molecule, and the row
        numbers (B,) of these reference molecules (-1 if the similarity is 0)."""
        samples, sizes = _unpack(fingerprints)
        best, rows = np.empty(len(samples)), np.empty(len(samples), np.int64)
        _nearest(samples, sizes, self._rows, self._starts, best, rows)
        return best, np.where(rows < 0, -1, np.append(self._order, -1)[rows])


def internal_diversity(fingerprints: Iterable[bytes]) -> float:
    """Return 1 - the mean Tanimoto similarity over pairs of `fingerprints`; NaN for fewer than two."""
    rows, sizes = _unpack(fingerprints)
    pairs = len(rows) * (len(rows) - 1) / 2
    return 1 - _sum_of_pairs(rows, sizes) / pairs if pairs else np.nan


def _unpack(fingerprints: Iterable[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return M fingerprints as words (M, 32) uint64, and for each the number of bits that are 1 (M,)."""
    rows = np.frombuffer(bytearray().join(fingerprints), np.uint64).reshape(-1, BITS // 64)
    return rows, np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
