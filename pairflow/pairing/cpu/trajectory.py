"""Algorithm 1, compiled: moves queries from their data points to their sources. See `pairing.rule`."""

import numpy as np

from pairflow.pairing.cpu.candidates import decide, find_candidates
from pairflow.pairing.cpu.certificate import pair_by_data_row
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.matches import apply_moves, copy_state, move
from pairflow.pairing.cpu.numbers import draw, other, split


@compiled
def pair_queries(keys, sources, row_numbers, rates, tables, margin, seed, vocabulary_size, work):
    """Move the queries `sources` (b, N), in place, from data rows to sources (Algorithm 1).

    `keys` are the data rows with which queries are compared, and `row_numbers` (b,) select the random
    numbers. `rates` (T,), `tables` (T, N+1) and `margin` are the chances to change, the levels' weights and
    the error bound of `pairing.rule`. `work` is the thread's `Workspace`.
    """
    seed_words, others = split(seed), np.uint64(vocabulary_size - 1)
    for query in range(len(sources)):
        z, row_words = sources[query], split(row_numbers[query])
        if keys.listed and work.tries[0] > 0:
            numbers = row_words, seed_words
            if pair_by_data_row(keys, z, *numbers, rates, tables[0], margin, others, work):
                continue
        _start(keys, z, work)
        ceiling = len(keys.columns)
        for step in range(len(rates), 0, -1):
            rate = rates[step - 1]
            draw(work.positions, np.uint64(step), row_words, seed_words, work.words, work.uniforms)
            _move_constants(keys.constants, z, rate, step, row_words, seed_words, others, work.uniforms)
            count = find_candidates(keys, work.here.rows, work.uniforms, rate, work.candidates)
            if count > 0:
                leaving, nearest = decide(keys, tables[step - 1], rate, margin, ceiling, count, work)
                # A new symbol depends only on seed, row, step and column, so these may come in any order.
                for i in work.candidates.leaving[:leaving]:
                    column = keys.columns[i]
                    z[column] = other(z[column], column, step, row_words, seed_words, others)
                    move(keys, work.here, i, z[column], work.scratch)
                apply_moves(keys, work.here, work.scratch)
                # Each change adds at most one match.
                ceiling = min(nearest + leaving, len(keys.columns))


@compiled
def _move_constants(constants, z, rate, step, row_words, seed_words, others, uniforms):
    """Draw new symbols, in place, for the constant columns (where all keys agree) that z still agrees with.

    There w_i is 1, so a column leaves if its random number in `uniforms` is below `rate`.
    """
    for column in range(len(z)):
        if constants[column] == z[column] and uniforms[column] < rate:
            z[column] = other(z[column], column, step, row_words, seed_words, others)


@compiled
def _start(keys, z, work):
    """Move the state `work.home` from the previous query's data point to the data point z (N,).

    Copies it to `work.here`.
    """
    for i in range(len(keys.columns)):
        symbol = z[keys.columns[i]]
        # Before its first move a column has no index row, but its symbol is 0, which may be the wanted one.
        if symbol != work.home.symbols[i] or work.home.rows[i] == keys.rows.none:
            move(keys, work.home, i, symbol, work.scratch)
    apply_moves(keys, work.home, work.scratch)
    copy_state(work.home, work.here)
