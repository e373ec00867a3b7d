"""Statistics of token rows that can be counted by hand."""

import numpy as np
import pytest

from pairflow.kinds.text.ngrams import (
    distinct_share,
    jensen_shannon,
    known_share,
    mark_padding,
    number_ngrams,
    repeated_share,
    token_entropy,
    whole_words,
)


def test_padding_is_no_token():
    assert mark_padding(np.array([[3, 0, 0]], np.uint8), 0).tolist() == [[3, -1, -1]]
    assert mark_padding(np.array([[3, 0, 0]], np.uint8), None).tolist() == [[3, 0, 0]]


def test_equal_ngrams_have_equal_numbers_whatever_their_size():
    """Codes of eight tokens below 30,522 would not fit in 64 bits."""
    rows = np.array([[30521] * 8 + [7], [5, *[30521] * 8]])
    numbers = number_ngrams(rows, 8)
    assert numbers[0, 0] == numbers[1, 1]
    assert len(np.unique(numbers)) == 3
    assert number_ngrams(np.array([[1, 2, -1, 1, 2]]), 2).tolist() == [[0, -1, -1, 0]]
    assert number_ngrams(rows, 10).size == 0


def test_entropy_of_constructed_rows():
    rows = np.array([[0, 1, 2, 3], [5, 5, 5, 5], [1, 1, 2, 2], [1, 2, -1, -1], [-1, -1, -1, -1]])
    assert token_entropy(rows) == pytest.approx(np.log([4, 1, 2, 2, 1]))


def test_jensen_shannon_is_0_for_the_same_ngrams_and_1_for_none_in_common():
    rows, others = np.array([[0, 1, 0, 1]]), np.array([[2, 3, 2, 3]])
    assert jensen_shannon(rows, rows, 2) == 0
    assert jensen_shannon(rows, others, 2) == 1
    # p = (1, 0) and q = (1/2, 1/2): 1/2 log2(4/3) + 1/4 log2(2/3) + 1/4 log2(2) bits.
    bits = np.log2(4 / 3) / 2 + np.log2(2 / 3) / 4 + 1 / 4
    assert jensen_shannon(np.array([[0, 0]]), np.array([[0, 1]]), 1) == pytest.approx(np.sqrt(bits))


def test_repeats_within_rows_and_between_them():
    rows = np.array([[0, 1, 0, 1, 0], [0, 1, 2, 3, 4]])
    assert repeated_share(rows, 2).tolist() == [0.5, 0]
    assert distinct_share(rows, 2) == 5 / 8
    assert repeated_share(np.array([[1, 1, -1, -1]]), 2).tolist() == [0]
    assert np.isnan(distinct_share(np.array([[1, -1]]), 2))


def test_words_are_whole_ones():
    assert whole_words("ark, To be -- or not, be seen qu") == ["to", "be", "or", "not", "be", "seen"]
    assert whole_words("Ark, be", cut=False) == ["ark", "be"]
    known = frozenset(["to", "be", "or"])
    assert known_share(["x to y be z", "b to c"], known) == 0.75
    assert np.isnan(known_share(["one"], known))
