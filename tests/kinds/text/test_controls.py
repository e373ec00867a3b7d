"""What the controls have in common with the training text, and what not."""

import numpy as np
import pytest

from pairflow.kinds.text.controls import CONTROLS, draw_chain, draw_shuffled, draw_snippet


@pytest.fixture
def training():
    """Rows of 0 1 2 0 1 2 ..., from any of the three."""
    return (np.arange(12) + np.arange(30)[:, None]) % 3


def test_the_chain_keeps_trigrams_and_begins_as_a_row_does(training):
    rows = draw_chain(training, 50, np.random.default_rng(0))
    assert (np.diff(rows, axis=1) % 3 == 1).all()
    assert set(rows[:, 0].tolist()) == {0, 1, 2}


def test_shuffled_rows_have_the_symbols_in_their_frequencies(training):
    rows = draw_shuffled(np.where(training == 2, -1, training), 500, np.random.default_rng(0))
    assert np.bincount(rows.ravel()) / rows.size == pytest.approx([0.5, 0.5], abs=0.03)


def test_a_snippet_is_one_training_row(training):
    rows = draw_snippet(training, 4, np.random.default_rng(0))
    assert (rows == rows[0]).all()
    assert rows[0].tolist() in training.tolist()


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_are_functions_of_the_seed(name, training):
    one, same, other = (CONTROLS[name](training, 40, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one.shape == (40, 12)
    assert (one == same).all()
    assert (one != other).any()


def test_a_chain_goes_on_after_tokens_that_nothing_follows():
    rows = draw_chain(np.array([[0, 1, 2]]), 5, np.random.default_rng(0))
    assert rows.tolist() == [[0, 1, 2]] * 5
    assert draw_chain(np.array([[4, 5]]), 2, np.random.default_rng(0)).tolist() == [[4, 5], [4, 5]]
