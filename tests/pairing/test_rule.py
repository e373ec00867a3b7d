"""What the rule's cut-off and its integers change (docs/method.md, "What the rule changes at most")."""

import itertools

import numpy as np
import pytest

from pairflow.pairing import local_consensus, oracle, rule

K, STEPS = 3, 4


def step_law(states, consensus, rate):
    """The probability of each state after one step of Algorithm 1 from each state, (S, S)."""
    leave = rate * consensus[:, None]  # (S, 1, N)
    stays = states[:, None] == states[None]  # (S, S, N)
    return np.where(stays, 1 - leave, leave / (K - 1)).prod(axis=2)


def law_of_walks(laws, start):
    """The probability of every sequence of states that a walk from state `start` can take, flat."""
    walks = laws[0][start]
    for law in laws[1:]:
        walks = walks[..., None] * law
    return walks.reshape(-1)


@pytest.mark.parametrize("tolerance", [0.05, 0.01])
def test_the_law_of_whole_walks_changes_by_at_most_the_bound(monkeypatch, tolerance):
    """Among 27 states everything can be counted, once with a cut-off so coarse that it matters there."""
    monkeypatch.setattr(rule, "TOLERANCE", tolerance)
    data = np.array([[0, 0, 0], [0, 0, 1], [1, 2, 1], [2, 2, 2], [2, 2, 2]])
    states = np.array(list(itertools.product(range(K), repeat=3)))
    rates, tables = rule.step_rates(STEPS, K), rule.level_tables(STEPS, 3, K)
    exact, ruled, largest = [], [], 0.0
    for step in range(STEPS, 0, -1):
        w = local_consensus(states, data, step / STEPS, vocabulary_size=K)
        rules_w = np.stack([oracle._trajectory_consensus(state, data, tables[step - 1]) for state in states])
        exact.append(step_law(states, w, rates[step - 1]))
        ruled.append(step_law(states, rules_w, rates[step - 1]))
        largest = max(largest, np.abs(w - rules_w).max())
    assert 0 < largest <= rule.margin(len(data))
    for start in range(len(states)):
        change = np.abs(law_of_walks(exact, start) - law_of_walks(ruled, start)).sum() / 2
        assert 0 < change <= largest * 3 * rates.sum()


def test_the_bound_for_qm9_is_the_one_that_the_documentation_states():
    keys, length, size, steps = 127_190, 32, 40, 20
    most_jumps = length * rule.step_rates(steps, size).sum()
    assert (round(most_jumps), f"{rule.margin(keys):.1e}") == (96, "2.1e-09")
    assert f"{rule.margin(keys) * most_jumps:.1e}" == "2.0e-07"
    assert round(keys * rule.margin(keys) * most_jumps, 3) == 0.026
