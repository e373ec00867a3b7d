"""The longest copied span, against a plain search; and whole words."""

from itertools import combinations

import numpy as np
import pytest

from pairflow.kinds.text.copied import longest_copies
from pairflow.kinds.text.ngrams import known_share, whole_words


def spans(row: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row[first:last].tolist()) for first, last in combinations(range(len(row) + 1), 2)}


def plain(row: np.ndarray, training: np.ndarray) -> int:
    known = set().union(*map(spans, training))
    return max((len(span) for span in spans(row) & known if min(span) >= 0), default=0)


@pytest.mark.parametrize("symbols", [1, 2, 6])
def test_the_longest_copied_span_is_that_of_a_plain_search(symbols):
    random = np.random.default_rng(symbols)
    rows, training = random.integers(-1, symbols, (20, 9)), random.integers(-1, symbols, (8, 11))
    assert longest_copies(rows, training).tolist() == [plain(row, training) for row in rows]


def test_a_copy_is_found_and_other_symbols_share_nothing():
    training = np.random.default_rng(0).integers(0, 27, (200, 16))
    rows = np.concatenate([training[7:8], np.full((1, 16), 30), np.roll(training[9:10], 5, axis=1)])
    assert longest_copies(rows, training).tolist() == [16, 0, 11]


def test_words_are_whole_ones():
    assert whole_words("ark, To be -- or not, be seen qu") == ["to", "be", "or", "not", "be", "seen"]
    assert whole_words("Ark, be", cut=False) == ["ark", "be"]
    known = frozenset(["to", "be", "or"])
    assert known_share(["x to y be z", "b to c"], known) == 0.75
    assert np.isnan(known_share(["one"], known))
