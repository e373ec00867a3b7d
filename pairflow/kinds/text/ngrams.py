"""N-grams (runs of n tokens) of token rows: their frequencies and repeats; entropy of rows; known words."""

from collections.abc import Iterable

import numpy as np

_SIGNS = ".,;:!?\"'`()[]{}-_"


def mark_padding(rows: np.ndarray, padding: int | None) -> np.ndarray:
    """Return rows (B, N) as int32, with -1 (a missing token) in place of the padding token, if any."""
    marked = rows.astype(np.int32)
    return marked if padding is None else np.where(marked == padding, np.int32(-1), marked)


def number_ngrams(rows: np.ndarray, size: int) -> np.ndarray:
    """Number the n-grams of `size` tokens in rows (B, N), (B, N - size + 1) int64: equal n-grams have equal
    numbers.

    Numbers start at 0; an n-gram with a missing token (-1) has -1. Sizes 1, 2, ... are numbered one after
    another, so that 64 bits are enough.
    """
    symbols = max(int(rows.max(initial=0)) + 1, 1)
    numbers = rows.astype(np.int64)
    for offset in range(1, size):
        last = rows[:, offset : rows.shape[1] - size + 1 + offset]
        numbers = numbers[:, : last.shape[1]]
        present = (numbers >= 0) & (last >= 0)
        codes = np.where(present, numbers * symbols + last, -1)
        values, indices = np.unique(codes, return_inverse=True)
        numbers = indices.reshape(codes.shape) - int(values[:1].tolist() == [-1])
    return np.maximum(numbers, -1)


def token_entropy(rows: np.ndarray) -> np.ndarray:
    """Return the entropy of the symbol frequencies within each of the rows (B, N), (B,) in nats, from 0 to ln
    N.

    For a row of n tokens it is ln n - sum c ln c / n over symbols that occur c times. Missing tokens (-1) do
    not count.
    """
    symbols = max(int(rows.max(initial=0)) + 1, 1)
    codes = np.arange(len(rows))[:, None] * symbols + rows
    present = rows >= 0
    values, counts = np.unique(codes[present], return_counts=True)
    sums = np.bincount(values // symbols, counts * np.log(counts), minlength=len(rows))
    totals = np.maximum(present.sum(axis=1), 1)
    return np.log(totals) - sums / totals


def jensen_shannon(rows: np.ndarray, others: np.ndarray, size: int) -> float:
    """Return the Jensen-Shannon distance between the n-gram frequencies p and q of rows (B, N) and (V, N).

    It is the square root of 1/2 KL(p || m) + 1/2 KL(q || m) in bits, with m = (p + q) / 2, from 0 to 1. The
    positions of n-grams do not matter.
    """
    numbers = number_ngrams(np.concatenate([rows, others]), size)
    length = numbers.max(initial=0) + 1
    parts = (part[part >= 0] for part in np.split(numbers, [len(rows)]))
    p, q = (np.bincount(part, minlength=length) / max(part.size, 1) for part in parts)
    middle = (p + q) / 2
    bits = 0.0
    for one in (p, q):
        seen = one > 0
        bits += float((one[seen] * np.log2(one[seen] / middle[seen])).sum()) / 2
    return float(np.sqrt(np.clip(bits, 0, 1)))


def repeated_share(rows: np.ndarray, size: int) -> np.ndarray:
    """Return the share of n-grams of `size` tokens that repeat an earlier one in their row (rep-n), (B,):
    1 - different / all, or 0 without any n-gram."""
    numbers = number_ngrams(rows, size)
    counts = (numbers >= 0).sum(axis=1)
    ordered = np.sort(numbers, axis=1)
    new = np.diff(ordered, axis=1, prepend=-1) != 0
    different = (new & (ordered >= 0)).sum(axis=1)
    return np.where(counts, 1 - different / np.maximum(counts, 1), 0.0)


def distinct_share(rows: np.ndarray, size: int) -> float:
    """Return the share of different n-grams (distinct-n) among all n-grams of all rows; NaN without any."""
    numbers = number_ngrams(rows, size)
    present = numbers[numbers >= 0]
    return len(np.unique(present)) / present.size if present.size else float("nan")


def whole_words(text: str, cut: bool = True) -> list[str]:
    """List the words of a text, in lower case and without punctuation at their ends. With `cut` the first and
    the last are left out, because a row may begin or end within a word."""
    words = text.split()
    stripped = (word.strip(_SIGNS).lower() for word in (words[1:-1] if cut else words))
    return [word for word in stripped if word]


def known_share(texts: Iterable[str], known: frozenset[str], cut: bool = True) -> float:
    """Return the share of the words of all texts that are in `known`; repeats count. NaN without words."""
    words = [word for text in texts for word in whole_words(text, cut)]
    return sum(word in known for word in words) / len(words) if words else float("nan")
