"""A data point on its way to noise: its ends are the data and the sources that the couplings have."""

import numpy as np
import pytest

import pairflow
from pairflow import rng
from pairflow.report import trajectory
from pairflow.report.trajectory import BACKWARD, UNIFORM, follow

ROWS = np.random.default_rng(0).integers(0, 3, (40, 12), dtype=np.uint8)
SETTINGS = {"vocabulary_size": 3, "steps": 20, "seed": 5}


def test_it_goes_from_the_data_to_the_sources_of_pairflow_and_of_random():
    found = follow(ROWS, 7, **SETTINGS)
    assert found.times == [1, 0.75, 0.5, 0.25, 0]
    ends = {name: states[[0, -1]] for name, states in found.states.items()}
    x0 = pairflow.pair(ROWS, **SETTINGS, backend="cpu", progress=False)[7]
    assert np.array_equal(ends[BACKWARD], [ROWS[7], x0])
    assert np.array_equal(ends[UNIFORM], [ROWS[7], rng.uniform_tokens(5, [7], 12, 3)[0]])
    for name, states in found.states.items():
        assert found.distances[name] == [sum(state != ROWS[7]) for state in states]


def test_tokens_are_spelt_and_those_that_differ_are_marked():
    found = follow(ROWS, 7, **SETTINGS)
    first, *_, last = found.spell(BACKWARD, {0: "C", 1: "<pad>"})
    names = {0: "C", 1: "<pad>", 2: "2"}
    assert first == [(names[token], False) for token in ROWS[7]]
    assert [text for text, _ in last] == [names[token] for token in found.states[BACKWARD][-1]]
    assert sum(differs for _, differs in last) == found.distances[BACKWARD][-1]


def test_long_states_are_spelt_in_part():
    found = follow(np.zeros((2, 101), np.uint8), 0, vocabulary_size=2, steps=4, seed=0)
    assert found.spell(UNIFORM, {0: "C"})[0] == [("C", False)] * 100 + [("…", False)]


@pytest.mark.parametrize(("steps", "times"), [(1, [1, 0]), (2, [1, 0.5, 0]), (8, [1, 0.75, 0.5, 0.25, 0])])
def test_few_steps_have_few_states(steps, times):
    found = follow(ROWS, 0, vocabulary_size=3, steps=steps, seed=0)
    assert found.times == times
    assert {len(states) for states in found.states.values()} == {len(times)}


def test_data_too_large_to_follow_in_a_report_are_left_out(monkeypatch):
    monkeypatch.setattr(trajectory, "_LARGEST", ROWS.size - 1)
    assert follow(ROWS, 0, **SETTINGS) is None
