"""An n-gram model of text with interpolated Kneser-Ney smoothing (Chen and Goodman 1999).

After the tokens h it gives the token w

    p_k(w | h) = (max(c(h w) - D_k, 0) + D_k f(h) p_(k-1)(w | h')) / sum_v c(h v)

with k - 1 the length of h, h' its last k - 2 tokens, f(h) the number of different tokens after h, and
p_0 = 1 / K. Where nothing follows h, p_k is p_(k-1). c counts occurrences at the longest context, and below
it the different tokens that precede. D_k = n_1 / (n_1 + 2 n_2) with n_r the number of k-grams of count r, or
1/2 if there is none of either.

The longest context has order - 1 tokens, or as many as there are in the row. The model has no random numbers:
equal text gives equal probabilities.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class _Counts:
    """The counts c of k-grams by number, and by their context's number its sums and its followers."""

    counts: np.ndarray
    sums: np.ndarray
    followers: np.ndarray
    discount: float

    @classmethod
    def collect(cls, counts: np.ndarray, contexts: np.ndarray, size: int) -> Self:
        """`contexts` has the number of each k-gram's context, below `size`."""
        once, twice = (int(np.count_nonzero(counts == number)) for number in (1, 2))
        discount = once / (once + 2 * twice) if once and twice else 0.5
        sums = np.bincount(contexts, counts, size)
        return cls(counts, sums, np.bincount(contexts, counts > 0, size), discount)

    def probabilities(self, numbers: np.ndarray, contexts: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """p_k from p_(k-1) = `lower`, for k-grams and contexts by their numbers, -1 for unknown ones."""
        count = np.where(numbers >= 0, self.counts[numbers], 0)
        sums = np.where(contexts >= 0, self.sums[contexts], 0)
        kept = np.maximum(count - self.discount, 0) + self.discount * self.followers[contexts] * lower
        return np.where(sums > 0, kept / np.maximum(sums, 1), lower)


@dataclass(frozen=True)
class _Level:
    """The k-grams of the text: context's number * K + last token, sorted, and their counts. `continued`
    counts the different tokens before each; the highest order has none."""

    codes: np.ndarray
    counted: _Counts
    continued: _Counts | None = None


@dataclass(frozen=True)
class KneserNey:
    """The model; `levels[k - 1]` has the k-grams."""

    vocabulary_size: int
    levels: tuple[_Level, ...]

    @classmethod
    def fit(cls, rows: np.ndarray, vocabulary_size: int, order: int) -> Self:
        """The model of rows (B, N) of text. One long row is fine, and n-grams never cross rows."""
        levels: list[_Level] = []
        numbers = np.zeros(rows.shape, np.int64)  # of the n-gram that ends at each place; first the empty one
        contexts, size = numbers, 1
        for _ in range(order):
            present = (contexts >= 0) & (rows >= 0)
            codes, first, places, counts = np.unique(
                contexts[present] * vocabulary_size + rows[present],
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if not len(codes):  # no row is as long
                break
            if levels:
                preceding = np.bincount(numbers[present][first], minlength=size)
                below = levels[-1]
                shorter = below.codes // vocabulary_size
                continued = _Counts.collect(preceding, shorter, len(below.counted.sums))
                levels[-1] = _Level(below.codes, below.counted, continued)
            levels.append(_Level(codes, _Counts.collect(counts, codes // vocabulary_size, size)))
            numbers = np.full(rows.shape, -1)
            numbers[present] = places
            contexts, size = _before(numbers), len(codes)
        return cls(vocabulary_size, tuple(levels))

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """(B, N) float64: of each token given those before it in its row; NaN where there is no token."""
        result = np.full(rows.shape, np.nan)
        lower = np.full(rows.shape, 1 / self.vocabulary_size)
        places = np.arange(rows.shape[1])
        gaps = np.maximum.accumulate(_before(np.where(rows < 0, places, -1)), axis=1)
        lengths = places - 1 - gaps  # of the tokens before each place, without a gap
        for size, (level, numbers, contexts) in enumerate(self._look_up(rows)):
            longest = level.counted.probabilities(numbers, contexts, lower)
            last = level.continued is None
            here = (rows >= 0) & ((lengths >= size) if last else (lengths == size))
            result[here] = longest[here]
            if level.continued is not None:
                lower = level.continued.probabilities(numbers, contexts, lower)
        return result

    def perplexity(self, rows: np.ndarray) -> float:
        """exp of the mean negative log-probability of all tokens of the rows (B, N)."""
        return float(np.exp(-np.nanmean(np.log(self.probabilities(rows)))))

    def _look_up(self, rows: np.ndarray) -> Iterator[tuple[_Level, np.ndarray, np.ndarray]]:
        """Each level with the numbers of the n-grams that end at each place, and of their contexts."""
        contexts = np.zeros(rows.shape, np.int64)
        for level in self.levels:
            codes = contexts * self.vocabulary_size + rows
            places = np.minimum(np.searchsorted(level.codes, codes), len(level.codes) - 1)
            known = (contexts >= 0) & (rows >= 0) & (level.codes[places] == codes)
            numbers = np.where(known, places, -1)
            yield level, numbers, contexts
            contexts = _before(numbers)


def _before(numbers: np.ndarray) -> np.ndarray:
    """What stands one place to the left, -1 at the beginning of a row."""
    return np.pad(numbers[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
