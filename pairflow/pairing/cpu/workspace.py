"""The memory that a thread of the CPU engine writes to: the state of its query, and scratch."""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu.block import WORDS, zero_blocks
from pairflow.pairing.cpu.candidates import Candidates, candidates_for
from pairflow.pairing.cpu.certificate import TRIES
from pairflow.pairing.cpu.keys import Keys
from pairflow.pairing.cpu.matches import Scratch, State, scratch_for, state_for


class Workspace(NamedTuple):
    """The memory that one thread writes to while it pairs queries."""

    home: State  # of the query at its data point
    here: State  # of the query where it is now
    scratch: Scratch
    candidates: Candidates
    level_sizes: np.ndarray  # (A + 2,): n_g of the opened levels, then the number of all farther keys
    weights: np.ndarray  # (A + 1,): W_g
    positions: np.ndarray  # (N',) uint64: 0, 1, 2, ..., padded to whole blocks
    words: np.ndarray  # (N',) uint64: random words, 64 bits for each position
    uniforms: np.ndarray  # (N',): the random numbers of one step, made from them
    data_row: np.ndarray  # (N,): the query's data point, for the certificate
    tries: np.ndarray  # (1,): how often the certificate may still fail


def workspace(keys: Keys) -> Workspace:
    """Return the memory of a thread that pairs queries among these keys (data rows)."""
    columns = len(keys.columns)
    words = zero_blocks(2, -(-len(keys.constants) // WORDS)).reshape(2, -1)
    words[0] = np.arange(words.shape[1])
    return Workspace(
        home=state_for(keys),
        here=state_for(keys),
        scratch=scratch_for(keys),
        candidates=candidates_for(columns),
        level_sizes=np.zeros(columns + 2, np.int64),
        weights=np.zeros(columns + 1, np.int64),
        positions=words[0],
        words=words[1],
        uniforms=np.zeros(words.shape[1]),
        data_row=np.zeros(len(keys.constants), keys.tokens.dtype),
        tries=np.array([TRIES]),
    )
