"""The second judge: a language whose entropy is known, and a network that does not look ahead."""

import numpy as np
import pytest
import torch

from pairflow.config import check
from pairflow.errors import InputError
from pairflow.kinds.text.judge import NextToken, train
from pairflow.kinds.text.settings import JudgeTransformer
from pairflow.networks.causal import CausalTransformer, mean_nll

SMALL = JudgeTransformer(width=16, blocks=1, heads=2, dropout=0, batch_size=32, iterations=150)
N, K = 8, 5


def language(count: int, seed: int) -> np.ndarray:
    """Rows 0 a 0 b ...: every other symbol is 0, the others are 1, 2, 3 or 4, each as often."""
    rows = np.zeros((count, N), np.int32)
    rows[:, 1::2] = np.random.default_rng(seed).integers(1, K, (count, N // 2))
    return rows


@pytest.fixture(scope="module")
def judge():
    return train(language(400, 0), K, SMALL, running=False, progress=False)


def test_it_reaches_the_exact_entropy_of_a_small_language(judge):
    network, held_back = judge
    nll = mean_nll(network, language(400, 1))
    assert nll == pytest.approx(np.log(4) / 2, rel=0.01)
    assert held_back == pytest.approx(nll, rel=0.01)


def test_a_later_token_does_not_change_earlier_probabilities(judge):
    rows = torch.from_numpy(language(3, 2)).long()
    changed = rows.clone()
    changed[:, 5] = 4 - changed[:, 5]
    with torch.no_grad():
        before, after = judge[0](rows), judge[0](changed)
    assert before.exp().sum(-1) == pytest.approx(1, abs=1e-5)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.equal(before[:, 6:], after[:, 6:])


def test_the_first_token_has_a_probability_and_padding_has_none(judge):
    """-log p of `0 a` and then nothing is that of its two tokens, whatever the rest of the row is."""
    rows = language(6, 3)
    rows[:, 2:] = -1
    assert mean_nll(judge[0], rows) == pytest.approx(np.log(4) / 2, rel=0.02)


def test_running_text_is_learnt_from_any_place_on(judge):
    """A row may then begin with either kind of symbol; the other judge knows only rows that begin with 0."""
    longer = SMALL.model_copy(update={"iterations": 400})
    running, _ = train(language(400, 0), K, longer, running=True, progress=False)
    shifted = language(400, 1).reshape(-1)[1:-7].reshape(-1, N)
    # The first token is one of two kinds, and then alternates.
    exact = (N / 2 * np.log(4) + np.log(2)) / N
    assert mean_nll(running, shifted) == pytest.approx(exact, rel=0.05)
    assert mean_nll(judge[0], shifted) > 1.5 * exact


def test_slices_of_a_batch_add_up_to_its_mean():
    rows = language(10, 0)
    rows[3:, 5:] = -1
    network = CausalTransformer(length=N, vocabulary_size=K, width=8, blocks=1, heads=2, dropout=0)
    objective = NextToken(rows, 10, 0)
    parts = [slice(0, 4), slice(4, 10)]
    with torch.no_grad():
        losses = [float(objective(network, 0, part)) * (part.stop - part.start) / 10 for part in parts]
        whole = float(objective(network, 0))
    assert sum(losses) == pytest.approx(whole)
    assert whole == pytest.approx(mean_nll(network, rows))


def test_heads_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="30 is no multiple of 2 x heads, 8"):
        check(JudgeTransformer, {"width": 30, "heads": 4}, "judge")
