"""An n-gram model of text with interpolated Kneser-Ney smoothing (Chen and Goodman 1999).

The probability of a token w after the tokens h is

    p_k(w | h) = (max(c(h w) - D_k, 0) + D_k f(h) p_(k-1)(w | h')) / sum_v c(h v)

where h has k - 1 tokens, h' is its last k - 2 tokens, f(h) is the number of different tokens after h, and
p_0 = 1 / K for K symbols. If nothing follows h in the text, p_k = p_(k-1). With the longest context, c counts
occurrences; with a shorter one, the different tokens before the k-gram. D_k = n_1 / (n_1 + 2 n_2), where n_r
is the number of k-grams with count r, or 1/2 if n_1 or n_2 is 0.

The longest context has order - 1 tokens, or fewer at the start of a row. The model is deterministic.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class _Counts:
    """The counts of the k-grams for one k, for the formula in the module's docstring: `counts` c, their
    `sums` and the numbers of different next tokens f (`followers`) by context, and D_k, which is
    subtracted (`discount`)."""

    counts: np.ndarray
    sums: np.ndarray
    followers: np.ndarray
    discount: float

    @classmethod
    def collect(cls, counts: np.ndarray, contexts: np.ndarray, size: int) -> Self:
        """Find sums, followers and discount from the `counts` of k-grams. `contexts` has the number of
        each k-gram's context; these numbers are below `size`."""
        once, twice = (int(np.count_nonzero(counts == number)) for number in (1, 2))
        discount = once / (once + 2 * twice) if once and twice else 0.5
        sums = np.bincount(contexts, counts, size)
        return cls(counts, sums, np.bincount(contexts, counts > 0, size), discount)

    def probabilities(self, numbers: np.ndarray, contexts: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """Return p_k, the smoothed probability of each k-gram's last token after its context, from
        p_(k-1), `lower`. `numbers` and `contexts` are the numbers of the k-grams and of their contexts, -1
        if unknown."""
        count = np.where(numbers >= 0, self.counts[numbers], 0)
        sums = np.where(contexts >= 0, self.sums[contexts], 0)
        mass = np.maximum(count - self.discount, 0) + self.discount * self.followers[contexts] * lower
        return np.where(sums > 0, mass / np.maximum(sums, 1), lower)


@dataclass(frozen=True)
class _Level:
    """The k-grams of the text for one k.

    The code of a k-gram is (number of its context) * K + its last token, for K symbols; `codes` are sorted.
    `counted` counts occurrences of each k-gram, `continued` the different tokens before it (None at the
    highest order).
    """

    codes: np.ndarray
    counted: _Counts
    continued: _Counts | None = None


@dataclass(frozen=True)
class KneserNey:
    """An n-gram model with Kneser-Ney smoothing (see the module); `levels[k - 1]` has the k-grams."""

    vocabulary_size: int
    levels: tuple[_Level, ...]

    @classmethod
    def fit(cls, rows: np.ndarray, vocabulary_size: int, order: int) -> Self:
        """Fit the model to rows of text (B, N), perhaps one long row, by n-grams of up to `order` tokens.
        N-grams do not cross rows or missing tokens (-1)."""
        levels: list[_Level] = []
        numbers = np.zeros(rows.shape, np.int64)  # of the n-gram that ends at each token, at first empty
        contexts, size = numbers, 1
        for _ in range(order):
            present = (contexts >= 0) & (rows >= 0)
            codes, first, indices, counts = np.unique(
                contexts[present] * vocabulary_size + rows[present],
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if not len(codes):  # all rows are shorter
                break
            if levels:
                preceding = np.bincount(numbers[present][first], minlength=size)
                below = levels[-1]
                shorter = below.codes // vocabulary_size
                continued = _Counts.collect(preceding, shorter, len(below.counted.sums))
                levels[-1] = _Level(below.codes, below.counted, continued)
            levels.append(_Level(codes, _Counts.collect(counts, codes // vocabulary_size, size)))
            numbers = np.full(rows.shape, -1)
            numbers[present] = indices
            contexts, size = _before(numbers), len(codes)
        return cls(vocabulary_size, tuple(levels))

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return p(token | tokens before it in its row) as (B, N) float64; NaN for a missing token (-1)."""
        result = np.full(rows.shape, np.nan)
        lower = np.full(rows.shape, 1 / self.vocabulary_size)
        positions = np.arange(rows.shape[1])
        gaps = np.maximum.accumulate(_before(np.where(rows < 0, positions, -1)), axis=1)
        lengths = positions - 1 - gaps  # tokens between a position and the last missing token before it
        for size, (level, numbers, contexts) in enumerate(self._look_up(rows)):
            longest = level.counted.probabilities(numbers, contexts, lower)
            last = level.continued is None
            chosen = (rows >= 0) & ((lengths >= size) if last else (lengths == size))
            result[chosen] = longest[chosen]
            if level.continued is not None:
                lower = level.continued.probabilities(numbers, contexts, lower)
        return result

    def perplexity(self, rows: np.ndarray) -> float:
        """Return exp of the mean negative log-probability of all tokens of the rows (B, N)."""
        return float(np.exp(-np.nanmean(np.log(self.probabilities(rows)))))

    def _look_up(self, rows: np.ndarray) -> Iterator[tuple[_Level, np.ndarray, np.ndarray]]:
        """Yield each level with the number of the k-gram that ends at each token, (B, N), and the number of
        the context of this k-gram; -1 if unknown."""
        contexts = np.zeros(rows.shape, np.int64)
        for level in self.levels:
            codes = contexts * self.vocabulary_size + rows
            indices = np.minimum(np.searchsorted(level.codes, codes), len(level.codes) - 1)
            known = (contexts >= 0) & (rows >= 0) & (level.codes[indices] == codes)
            numbers = np.where(known, indices, -1)
            yield level, numbers, contexts
            contexts = _before(numbers)


def _before(numbers: np.ndarray) -> np.ndarray:
    """Shift rows (B, N) by one position, so that each has the value before it; -1 at the beginning."""
    return np.pad(numbers[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
