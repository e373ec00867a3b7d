"""The method in one figure: a data point on its way to noise, by Algorithm 1 and by uniform corruption.

A report computes no results. A single row is the exception: Algorithm 1 on it takes a moment, and no step
stores the states between.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pairflow import rng
from pairflow.pairing.oracle import backward_states

BACKWARD, UNIFORM = "backward pairing", "uniform corruption"
_SHOWN = 5  # states, both ends included
_SPELT = 100  # tokens of a state in words
_LARGEST = 1 << 26  # tokens of a data set that a row is compared with: more would take a report too long


@dataclass(frozen=True)
class Trajectory:
    """States of one data point at `times` from 1 (data) to 0 (noise): a name -> (S, N) tokens."""

    times: list[float]
    states: Mapping[str, np.ndarray]

    @property
    def distances(self) -> dict[str, list[int]]:
        """The Hamming distance of each state from the data point."""
        return {
            name: np.count_nonzero(states != states[0], axis=1).tolist()
            for name, states in self.states.items()
        }

    def spell(self, name: str, symbols: Mapping[int, str]) -> list[list[tuple[str, bool]]]:
        """Each state as its tokens in words, and whether each differs from the data point's.

        `symbols` are the names of tokens; a token without one is its number. Long states end in an ellipsis.
        """
        states = self.states[name]
        ellipsis = [("…", False)] * (states.shape[1] > _SPELT)
        return [
            [
                (symbols.get(token, str(token)), token != own)
                for token, own in zip(state[:_SPELT].tolist(), states[0][:_SPELT].tolist(), strict=True)
            ]
            + ellipsis
            for state in states
        ]


def follow(data: np.ndarray, row: int, *, vocabulary_size: int, steps: int, seed: int) -> Trajectory | None:
    """The states of `data` (M, N) at one row; None for data too large to follow in a report.

    Backward pairing ends in the source that `pair` gives this row, uniform corruption in that of `random`.
    """
    if data.size > _LARGEST:
        return None
    number = np.array([row])
    indices = np.unique(np.linspace(0, steps, _SHOWN).round().astype(int))
    times = 1 - indices / steps
    settings = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
    backward = np.concatenate([*backward_states(data, data[number], number, **settings)])[indices]
    x0 = rng.uniform_tokens(seed, number, data.shape[1], vocabulary_size)
    uniform = draw_between(x0, data[number], seed, tuple(times))[0]
    return Trajectory(times.tolist(), {BACKWARD: backward, UNIFORM: uniform})


def draw_between(x0: np.ndarray, x1: np.ndarray, seed: int, times: tuple[float, ...]) -> np.ndarray:
    """States (B, S, N) at `times` between token rows x0 and x1 (B, N): x1 with probability t, else x0.

    A position that holds x1 at one time holds it at all later times.
    """
    uniforms, _ = rng.draws(rng.stream_seed(seed, "between"), np.arange(len(x1)), 0, x1.shape[1])
    return np.stack([np.where(uniforms < time, x1, x0) for time in times], axis=1)
