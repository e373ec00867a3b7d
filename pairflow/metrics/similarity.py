"""Tanimoto similarity of molecules by their Morgan fingerprints, exact, against whole training sets.

The fingerprint is RDKit's: Morgan, radius 2 (ECFP4), 2,048 bits, packed into 32 words of 64 bits. The
Tanimoto similarity of two bit sets a and b is |a & b| / |a | b|.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

BITS = 2048
WORDS = BITS // 64


_WORD = ir.IntType(64)
_ROW = ir.VectorType(_WORD, WORDS)


@intrinsic
def _common(typing, one, i, other, j):
    """Bits that row `i` of `one` and row `j` of `other` share; both are contiguous (rows, 32) uint64.

    A row is one LLVM vector, which LLVM lowers to whatever the machine has.
    """

    def row(context, builder, kind, array, index):
        first = cgutils.create_struct_proxy(kind)(context, builder, array).data
        word = builder.gep(first, [builder.mul(index, ir.Constant(index.type, WORDS))])
        loaded = builder.load(builder.bitcast(word, _ROW.as_pointer()))
        loaded.align = 8
        return loaded

    def call(builder, name, result, value):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [value.type]), name)
        return builder.call(function, [value])

    def build(context, builder, signature, arguments):
        kinds = signature.args
        rows = [row(context, builder, kinds[k], arguments[k], arguments[k + 1]) for k in (0, 2)]
        bits = call(builder, f"llvm.ctpop.v{WORDS}i64", _ROW, builder.and_(*rows))
        return call(builder, f"llvm.vector.reduce.add.v{WORDS}i64", _WORD, bits)

    return numba.types.int64(one, i, other, j), build


@numba.njit(nogil=True, cache=True)
def _nearest(samples, sizes, reference, starts, best):
    """`best[i]`: the largest similarity of samples[i] to a reference row; those lie in order of their size.

    Sizes a <= b bound the similarity by a / b (Swamidass and Baldi 2007): the search starts at rows of the
    sample's own size and goes outwards until the bound is no larger than what was found.
    """
    largest = len(starts) - 2
    for i in range(len(samples)):
        size, found = sizes[i], 0.0
        for away in range(max(size, largest - size) + 1 if size else 0):
            below, above = size - away, size + away
            if (size / above if above <= largest else below / size) <= found:
                break
            for other in (below, above) if away else (size, -1):
                if other < 0 or other > largest:
                    continue
                for row in range(starts[other], starts[other + 1]):
                    common = _common(samples, i, reference, row)
                    found = max(found, common / (size + other - common))
        best[i] = found


@numba.njit(nogil=True, cache=True)
def _sum_of_pairs(rows, sizes):
    total = 0.0
    for i in range(len(rows)):
        for j in range(i):
            common = _common(rows, i, rows, j)
            total += common / (sizes[i] + sizes[j] - common)
    return total


class Neighbours:
    """Reference molecules that the nearest is looked up in: packed fingerprints (M, 32) uint64."""

    def __init__(self, fingerprints: np.ndarray):
        sizes = _sizes(fingerprints)
        self._rows = np.ascontiguousarray(fingerprints[np.argsort(sizes, kind="stable")])
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(sizes, minlength=BITS + 1))])

    def similarity(self, fingerprints: np.ndarray) -> np.ndarray:
        """(B,) float64: the largest Tanimoto similarity of each of (B, 32) to a reference molecule.

        It is 1 for a molecule of the reference (or one that its fingerprint does not tell from such).
        """
        best = np.empty(len(fingerprints))
        rows = np.ascontiguousarray(fingerprints)
        _nearest(rows, _sizes(rows), self._rows, self._starts, best)
        return best


def internal_diversity(fingerprints: np.ndarray) -> float:
    """1 - the mean Tanimoto similarity over pairs of different rows of (B, 32); NaN of fewer than two."""
    pairs = len(fingerprints) * (len(fingerprints) - 1) / 2
    rows = np.ascontiguousarray(fingerprints)
    return 1 - _sum_of_pairs(rows, _sizes(rows)) / pairs if pairs else np.nan


def _sizes(fingerprints: np.ndarray) -> np.ndarray:
    return np.bitwise_count(fingerprints).sum(axis=1, dtype=np.int64)
