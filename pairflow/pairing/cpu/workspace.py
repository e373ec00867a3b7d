"""The memory that a task of the CPU engine writes to: the state of its query, and scratch for levels."""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu.block import zero_blocks
from pairflow.pairing.cpu.candidates import Candidates, candidates_for
from pairflow.pairing.cpu.counters import OCTAVE, planes_for
from pairflow.pairing.cpu.keys import Keys


class QueryState(NamedTuple):
    """Where a query is: its symbols in the A varying columns, and how well every key matches them."""

    symbols: np.ndarray  # (A',)
    rows: np.ndarray  # (A,): the symbols' rows in the index, -1 where no key holds the symbol
    planes: np.ndarray  # (blocks, P, 8): the match counters


class Workspace(NamedTuple):
    """What one task writes to. There are at most A + 1 levels; L leaves room to complete an octave."""

    home: QueryState  # the query before it moves
    here: QueryState
    masks: np.ndarray  # (8, blocks, 8): the keys of each match count of an octave
    octave_counts: np.ndarray  # (8,): their numbers
    touched: np.ndarray  # (blocks,): the places where `masks` was written
    level_counts: np.ndarray  # (L,): n_g
    weights: np.ndarray  # (L,): W_g
    counts: np.ndarray  # (L, A): c_g[i], the keys of level g that agree at candidate j's column
    listed: np.ndarray  # (M,): the keys of one level
    candidates: Candidates
    gained: np.ndarray  # (A,): for K = 2, the rows of the symbols that the query moves to
    whole: np.ndarray  # (7, blocks, 8): seven of these rows
    scanned: np.ndarray  # (2, blocks, 8): rows that are not stored
    every_place: np.ndarray  # (blocks,): 0, 1, 2, ...
    jumps: np.ndarray  # (T,): the positions that jumped at each step, over all queries


def workspace(keys: Keys, steps: int) -> Workspace:
    """A workspace for T = `steps` steps of queries among these keys."""
    blocks, columns = len(keys.bitmaps.valid), len(keys.columns)
    room = columns + OCTAVE + 2
    return Workspace(
        home=_state(keys),
        here=_state(keys),
        masks=zero_blocks(OCTAVE, blocks),
        octave_counts=np.zeros(OCTAVE, np.int64),
        touched=np.zeros(blocks, np.int64),
        level_counts=np.zeros(room, np.int64),
        weights=np.zeros(room, np.int64),
        counts=np.zeros((room, columns), np.int32),
        listed=np.zeros(keys.number, np.int64),
        candidates=candidates_for(columns),
        gained=np.zeros(columns, np.int64),
        whole=zero_blocks(7, blocks),
        scanned=zero_blocks(2, blocks),
        every_place=np.arange(blocks, dtype=np.int32),
        jumps=np.zeros(steps, np.int64),
    )


def _state(keys: Keys) -> QueryState:
    columns = len(keys.columns)
    return QueryState(
        symbols=np.zeros(keys.tokens.shape[1], keys.tokens.dtype),
        rows=np.full(columns, -1),
        planes=zero_blocks(len(keys.bitmaps.valid), planes_for(columns)),
    )
