"""One query after the other walks from its data point to its source: Algorithm 1, compiled.

Points of the rule are those of `pairing.rule`. A key's *match count* is the number of varying columns in
which it agrees with the query: the more, the nearer.
"""

import numpy as np

from pairflow import rng
from pairflow.pairing.cpu.bitmaps import find_row, index_row
from pairflow.pairing.cpu.candidates import decide, draw, find_candidates
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.counters import exchange, exchange_binary

_split = compiled(rng.split)


@compiled
def walk(keys, sources, row_numbers, rates, tables, margin, seed, vocabulary_size, work):
    """Walks `sources` (b, N) in place from the data at t = 1 to the source at t = 0.

    Adds to `work.jumps` the number of positions that jump in each step.
    """
    seed_words, others = _split(seed), np.uint64(vocabulary_size - 1)
    found = work.candidates
    if work.home.rows[0] < 0:
        _begin(keys, work)
    for query in range(len(sources)):
        z, row_words = sources[query], _split(row_numbers[query])
        _start(keys, z, work)
        ceiling = len(keys.columns)
        for step in range(len(rates), 0, -1):
            rate = rates[step - 1]
            work.jumps[step - 1] += _walk_constants(
                keys.constants, z, rate, step, row_words, seed_words, others
            )
            count = find_candidates(keys, work.here.rows, rate, step, row_words, seed_words, others, found)
            if count == 0:
                continue
            ceiling = decide(keys, tables[step - 1], rate, margin, ceiling, count, work)
            moves = 0
            for j in range(count):
                if found.leaves[j]:
                    i = found.columns[j]
                    column = keys.columns[i]
                    z[column] = _other(z[column], found.choices[j])
                    work.jumps[step - 1] += 1
                    moves += _enter(keys, work.here, i, z[column], moves, work)
            if keys.binary:
                exchange_binary(work.here.planes, keys.bitmaps, work.gained[:moves], work.whole)
            ceiling = min(ceiling + moves, len(keys.columns))


@compiled
def _other(symbol, choice):
    """The choice among the symbols other than this one."""
    return choice + np.uint64(choice >= symbol)


@compiled
def _walk_constants(constants, z, rate, step, row_words, seed_words, others):
    """Moves the columns in which all keys agree, and z with them: w_i is 1. Returns how many jump."""
    jumps = 0
    for column in range(len(z)):
        if constants[column] == z[column]:
            drawn, choice = draw(column, step, row_words, seed_words, others)
            if drawn < rate:
                z[column] = _other(z[column], choice)
                jumps += 1
    return jumps


@compiled
def _begin(keys, work):
    """Sets the home state of a new workspace to the first symbol of every column."""
    for i in range(len(keys.columns)):
        _enter(keys, work.home, i, keys.bitmaps.symbols[keys.bitmaps.first_rows[i]], 0, work)


@compiled
def _start(keys, z, work):
    """Moves the home state from the previous query to this one, and starts from there."""
    moves = 0
    for i in range(len(keys.columns)):
        symbol = z[keys.columns[i]]
        if symbol != work.home.symbols[i]:
            moves += _enter(keys, work.home, i, symbol, moves, work)
    if keys.binary:
        exchange_binary(work.home.planes, keys.bitmaps, work.gained[:moves], work.whole)
    _copy(work.home.symbols, work.here.symbols)
    _copy(work.home.rows, work.here.rows)
    _copy(work.home.planes.reshape(-1), work.here.planes.reshape(-1))


@compiled
def _copy(source, target):
    """target[:] = source, which takes Numba two seconds to compile."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled
def _enter(keys, state, i, symbol, moves, work):
    """Writes a symbol into varying column i of a state; returns 1 if that changed any match, else 0.

    For K = 2 the counters do not follow yet: the new row is noted in `work.gained`, after `moves` others.
    """
    old, new = state.rows[i], find_row(keys.bitmaps, i, symbol)
    if old == new:
        return 0
    state.rows[i] = new
    if keys.binary and old >= 0:
        work.gained[moves] = new
    else:
        lost = index_row(keys.bitmaps, i, old, state.symbols[i], work.scanned[0], work.every_place)
        gained = index_row(keys.bitmaps, i, new, symbol, work.scanned[1], work.every_place)
        exchange(state.planes, lost, gained)
    state.symbols[i] = symbol
    return 1
