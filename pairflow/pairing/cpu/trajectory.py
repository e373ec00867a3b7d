"""One query after the other walks from its data point to its source: Algorithm 1, compiled.

Points of the rule are those of `pairing.rule`.
"""

import numpy as np

from pairflow import rng
from pairflow.pairing.cpu.block import WORDS, fill, load, store
from pairflow.pairing.cpu.candidates import decide, find_candidates
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.matches import copy_state, follow_moves, move

_split = compiled(rng.split)
_philox = compiled(rng.philox4x32)
_uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)


@compiled
def walk(keys, sources, row_numbers, rates, tables, margin, seed, vocabulary_size, work):
    """Walks `sources` (b, N) in place from the data at t = 1 to the source at t = 0.

    Adds to `work.jumps` the number of positions that jump in each step.
    """
    seed_words, others = _split(seed), np.uint64(vocabulary_size - 1)
    for query in range(len(sources)):
        z, row_words = sources[query], _split(row_numbers[query])
        _start(keys, z, work)
        ceiling = len(keys.columns)
        for step in range(len(rates), 0, -1):
            rate = rates[step - 1]
            _draw(work.positions, np.uint64(step), row_words, seed_words, work.words, work.uniforms)
            jumps = _walk_constants(
                keys.constants, z, rate, step, row_words, seed_words, others, work.uniforms
            )
            count = find_candidates(keys, work.here.rows, work.uniforms, rate, work.candidates)
            if count > 0:
                leaving, nearest = decide(keys, tables[step - 1], rate, margin, ceiling, count, work)
                for i in work.candidates.leaving[:leaving]:
                    column = keys.columns[i]
                    z[column] = _other(z[column], column, step, row_words, seed_words, others)
                    move(keys, work.here, i, z[column], work.scratch)
                follow_moves(keys, work.here, work.scratch)
                ceiling = min(nearest + leaving, len(keys.columns))
                jumps += leaving
            work.jumps[step - 1] += jumps


@compiled
def _draw(positions, step, row_words, seed_words, words, uniforms):
    """Fills uniforms (N',) with the random numbers of a step, eight at a time."""
    low, high = fill(row_words[0]), fill(row_words[1])
    for place in range(len(positions) // WORDS):
        w0, w1, _, _ = _philox(load(positions, place), fill(step), low, high, *seed_words)
        store(words, place, w0 | (w1 << np.uint64(32)))
    for position in range(len(positions)):
        uniforms[position] = _uniform(*_split(words[position]))


@compiled
def _other(symbol, column, step, row_words, seed_words, others):
    """The symbol that a position moves to: its choice among the `others`."""
    _, _, word, _ = _philox(np.uint64(column), np.uint64(step), *row_words, *seed_words)
    choice = _choose(word, others)
    return choice + np.uint64(choice >= symbol)


@compiled
def _walk_constants(constants, z, rate, step, row_words, seed_words, others, uniforms):
    """Moves the columns in which all keys agree, and z with them: w_i is 1. Returns how many jump."""
    jumps = 0
    for column in range(len(z)):
        if constants[column] == z[column] and uniforms[column] < rate:
            z[column] = _other(z[column], column, step, row_words, seed_words, others)
            jumps += 1
    return jumps


@compiled
def _start(keys, z, work):
    """Moves the home state from the previous query to this one, and starts from there."""
    for i in range(len(keys.columns)):
        symbol = z[keys.columns[i]]
        if symbol != work.home.symbols[i] or work.home.rows[i] == keys.rows.none:
            move(keys, work.home, i, symbol, work.scratch)
    follow_moves(keys, work.home, work.scratch)
    copy_state(work.home, work.here)
