"""The match counts of all keys, for both layouts of the index: `planes` (of bitmaps) and `lists`.

A key's *match count* is the number of varying columns in which it agrees with the query. Keys with the same
match count form a level. c_g[i], the number of keys of level g that agree with the query at position i, is
counted in one of two exact ways:

- by rows: count the keys of an index row that are in the level. Best for a level with many keys.
- by keys: compare the symbols of each key of the level. Best for a level with few keys.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu import bitmaps, lists, planes
from pairflow.pairing.cpu.block import zero_blocks
from pairflow.pairing.cpu.compiled import compiled, inlined
from pairflow.pairing.cpu.index import find_row
from pairflow.pairing.cpu.keys import Keys

_KEY_COST = 8  # cost of listing a key, where reading a block or a listed key, or comparing a token, costs 1


class State(NamedTuple):
    """The symbols of a query, and the match count of every key (data row): in `planes` or in `counters`."""

    symbols: np.ndarray  # (A,): the symbols in the varying columns
    rows: np.ndarray  # (A,): the index rows of these symbols
    planes: np.ndarray  # (blocks, P, 8)
    counters: np.ndarray  # (M',)


class Scratch(NamedTuple):
    """A query's changes that its match counts still lack, and the levels that `open_level` found last.

    `octave` is -1 if there are no such levels.
    """

    number: np.ndarray  # (1,): the number of pending changes
    lost: np.ndarray  # (A,): the index rows of the old symbols
    gained: np.ndarray  # (A,): the index rows of the new symbols
    octave: np.ndarray  # (1,): the open octave, eight match counts of which `masks` has the keys
    masks: np.ndarray  # (8, blocks, 8): the keys of each match count of the octave
    sizes: np.ndarray  # (8,): the numbers of these keys
    written: np.ndarray  # (1,): the number of blocks of `masks` that were written
    touched: np.ndarray  # (blocks,): the numbers of these blocks
    listed: np.ndarray  # (M,): the keys of one level


def state_for(keys: Keys) -> State:
    """Return the state of a query that has no symbols yet, so that no key (data row) matches it."""
    columns = len(keys.columns)
    return State(
        symbols=np.zeros(columns, keys.tokens.dtype),
        rows=np.full(columns, keys.rows.none),
        planes=zero_blocks(len(keys.bitmaps.valid), planes.planes_for(columns)),
        counters=lists.counters_for(keys.number if keys.listed else 0),
    )


def scratch_for(keys: Keys) -> Scratch:
    """Return empty scratch memory for queries among these keys (data rows)."""
    blocks = len(keys.bitmaps.valid)
    return Scratch(
        number=np.zeros(1, np.int64),
        lost=np.zeros(len(keys.columns), np.int64),
        gained=np.zeros(len(keys.columns), np.int64),
        octave=np.array([-1]),
        masks=zero_blocks(planes.OCTAVE, blocks),
        sizes=np.zeros(planes.OCTAVE, np.int64),
        written=np.zeros(1, np.int64),
        touched=np.zeros(blocks, np.int64),
        listed=np.zeros(keys.number, np.int32),
    )


@inlined
def move(keys, state, i, symbol, scratch):
    """Give a query the symbol `symbol` in the varying column i.

    Match counts change at once only in bit planes for K > 2. Otherwise the change is noted in `scratch`. In
    both cases `apply_moves` must follow.
    """
    lost, gained = state.rows[i], find_row(keys.rows, i, symbol)
    state.symbols[i] = symbol
    if lost != gained:
        state.rows[i] = gained
        # `move_binary` takes a match from all keys without the new symbol; from `none` no key had one.
        if keys.listed or (keys.binary and lost != keys.rows.none):
            scratch.lost[scratch.number[0]] = lost
            scratch.gained[scratch.number[0]] = gained
            scratch.number[0] += 1
        else:
            planes.move(state.planes, keys.bitmaps, lost, gained)


@inlined
def apply_moves(keys, state, scratch):
    """Bring the match counts of all keys in `state` up to date with the query's symbols.

    `move` has collected the changed symbols in `scratch`, which is emptied.
    """
    lost, gained = scratch.lost[: scratch.number[0]], scratch.gained[: scratch.number[0]]
    if keys.listed:
        changed = lists.sizes(keys.lists, lost) + lists.sizes(keys.lists, gained)
        if changed > lists.sizes(keys.lists, state.rows):  # then counting again is cheaper
            lists.restart(keys.lists, state.counters, keys.number, state.rows)
        else:
            lists.move(keys.lists, state.counters, lost, gained)
    elif len(gained) > 0:
        planes.move_binary(state.planes, keys.bitmaps, gained)
    scratch.number[0] = 0
    # The counts have changed, so the masks of an open octave are out of date.
    scratch.octave[0] = -1


@compiled
def copy_state(source, target):
    """Copy the contents of the state `source` into the state `target`."""
    _copy(source.symbols, target.symbols)
    _copy(source.rows, target.rows)
    _copy(source.counters, target.counters)
    _copy(source.planes.reshape(-1), target.planes.reshape(-1))


@compiled
def _copy(source, target):
    """Copy an array by a loop, because Numba takes two seconds to compile `target[:] = source`."""
    for i in range(len(source)):
        target[i] = source[i]


@inlined
def greatest_possible(keys, state, ceiling):
    """Return a number that no match count exceeds: with lists the greatest match count, else `ceiling`."""
    return lists.greatest(state.counters, keys.number) if keys.listed else ceiling


@inlined
def open_level(keys, state, matches, scratch):
    """Find the keys (data rows) with exactly `matches` matches, for `count_level`; return their number."""
    if keys.listed:
        return lists.level_size(state.counters, matches)
    octave = matches // planes.OCTAVE
    if scratch.octave[0] != octave:
        scratch.octave[0] = octave
        scratch.written[0] = planes.split_octave(
            state.planes, keys.bitmaps.valid, octave, scratch.masks, scratch.touched, scratch.sizes
        )
    return scratch.sizes[matches % planes.OCTAVE]


@inlined
def count_level(keys, state, matches, number, scratch, columns, tally):
    """For each column in `columns`, count the keys of a level that agree with the query there; fill `tally`.

    The level has the `number` keys (data rows) with `matches` matches, which `open_level` has just found.
    """
    starts = keys.lists.starts if keys.listed else keys.bitmaps.starts
    by_rows = 0
    for i in columns:
        by_rows += starts[state.rows[i] + 1] - starts[state.rows[i]]
    mask, touched = scratch.masks[matches % planes.OCTAVE], scratch.touched[: scratch.written[0]]
    if number * (_KEY_COST + len(columns)) <= by_rows:
        if keys.listed:
            lists.list_level(state.counters, matches, scratch.listed)
        else:
            planes.list_keys(mask, touched, scratch.listed)
        count_by_keys(keys.tokens, scratch.listed[:number], state.symbols, columns, tally)
        return
    if not keys.listed:
        # `count_in_row` reads the mask at any block, also where an earlier octave has left bits.
        planes.clear_untouched(mask, scratch.touched, scratch.written[0])
    for n in range(len(columns)):
        row = state.rows[columns[n]]
        if keys.listed:
            tally[n] = lists.count_in_row(keys.lists, row, state.counters, matches)
        else:
            tally[n] = bitmaps.count_in_row(keys.bitmaps, row, mask)


@compiled
def count_by_keys(tokens, listed, symbols, columns, tally):
    """Write to tally[n] how many of some keys agree with `symbols` (A,) in column columns[n].

    `listed` has the numbers of these keys, and `tokens` (M, A) the varying columns of all keys.
    """
    for n in range(len(columns)):
        tally[n] = 0
    for key in listed:
        for n in range(len(columns)):
            tally[n] += tokens[key, columns[n]] == symbols[columns[n]]
