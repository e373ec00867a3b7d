"""The n-gram judge: an example worked out by hand, proper probabilities, and English text."""

import re
from pathlib import Path

import numpy as np
import pytest

from pairflow.kinds.text.kneser_ney import KneserNey

TEXT = (Path(__file__).parents[3] / "docs" / "method.md").read_text()


def test_an_example_worked_out_by_hand():
    """The text 0 1 0 1 2 with K = 3 and order 2.

    Bigrams: 01 twice, 10 and 12 once, so D_2 = 2 / (2 + 2). Each symbol follows one other, so that below
    the longest context p_1 = (1 - 1/2) / 3 + 1/2 / 3 = 1/3. A row begins with the counts 2, 2 and 1, so
    that D_1 = 1 / (1 + 4).
    """
    judge = KneserNey.fit(np.array([[0, 1, 0, 1, 2]]), 3, 2)
    first = {0: (2 - 0.2) / 5 + 0.2 * 3 / 5 / 3, 2: (1 - 0.2) / 5 + 0.2 * 3 / 5 / 3}
    after_0 = {1: (2 - 0.5) / 2 + 0.5 * 1 / 2 / 3, 0: 0.5 * 1 / 2 / 3}
    after_1 = {2: (1 - 0.5) / 2 + 0.5 * 2 / 2 / 3}
    rows = np.array([[0, 1, 2], [0, 0, -1], [2, 1, -1]])
    expected = [[first[0], after_0[1], after_1[2]], [first[0], after_0[0], np.nan]]
    expected.append([first[2], 1 / 3, np.nan])  # nothing follows a 2
    np.testing.assert_allclose(judge.probabilities(rows), expected, rtol=1e-12)
    assert judge.perplexity(rows[:1]) == pytest.approx((first[0] * after_0[1] * after_1[2]) ** (-1 / 3))


def test_probabilities_sum_to_one_after_every_context():
    random = np.random.default_rng(0)
    judge = KneserNey.fit(random.integers(0, 4, (30, 12)), 5, 4)  # the symbol 4 never occurs
    contexts = np.concatenate([random.integers(0, 5, (50, 6)), random.integers(-1, 5, (50, 6))])
    for length in range(7):
        rows = [np.column_stack([contexts[:, :length], np.full(100, symbol)]) for symbol in range(5)]
        after = np.stack([judge.probabilities(own)[:, -1] for own in rows])
        np.testing.assert_allclose(after.sum(axis=0), 1, rtol=1e-12)
        assert (after > 0).all()


def test_longer_contexts_read_english_better_and_no_ngram_crosses_a_row():
    letters = re.sub("[^a-z]+", " ", TEXT.lower())
    text = np.array([0 if letter == " " else ord(letter) - 96 for letter in letters])
    judged, held_out = text[: len(text) * 3 // 4][None], text[len(text) * 3 // 4 :][None]
    values = [KneserNey.fit(judged, 27, order).perplexity(held_out) for order in (1, 2, 3, 4)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 15
    assert values[-1] < 8
    single = KneserNey.fit(judged.T, 27, 3)  # rows of one token have no context
    assert single.perplexity(held_out) == pytest.approx(values[0])
