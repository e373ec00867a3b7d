"""One query after the other walks from its data point to its source: Algorithm 1, compiled.

Points of the rule are those of `pairing.rule`. A key's *match count* is the number of varying columns in
which it agrees with the query: the more, the nearer. Levels are opened by the *octave*,
eight match counts at a time.
"""

from typing import NamedTuple

import numpy as np

from pairflow import rng
from pairflow.pairing import rule
from pairflow.pairing.cpu.agreement import (
    add_by_keys,
    add_by_packed_keys,
    add_by_rows,
    add_by_scanned_rows,
    list_keys,
)
from pairflow.pairing.cpu.bitmaps import find_row, row_blocks, scan_blocks
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.counters import OCTAVE, IndexRow, clear_untouched, exchange, split_octave

_philox = compiled(rng.philox4x32)
_uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)
_split = compiled(rng.split)
_level_weights = compiled(rule.level_weights)


class OpenLevels(NamedTuple):
    """How far the levels of a state are known: match counts `nearest` down to 8 `octave`, one level each.

    The masks of `octave` are written at `touched` places. c_g is filled for the first `added` levels.
    """

    nearest: int
    octave: int
    touched: int
    added: int


@compiled
def walk(keys, sources, row_numbers, rates, tables, seed, vocabulary_size, work):
    """Walks `sources` (b, N) in place from the data at t = 1 to the source at t = 0.

    Adds to `work.jumps` the number of positions that jump in each step.
    """
    seed_words = _split(seed)
    others = np.uint64(vocabulary_size - 1)
    for query in range(len(sources)):
        z, row_words = sources[query], _split(row_numbers[query])
        _start(keys, z, work)
        levels = _nearest_octave(keys, len(keys.columns), work)
        for step in range(len(rates), 0, -1):
            rate = rates[step - 1]
            levels, total = _sum_levels(keys, tables[step - 1], levels, work)
            for column in range(len(z)):
                if keys.constants[column] == z[column]:
                    symbol = _jump(z[column], rate, others, column, step, row_words, seed_words)
                    work.jumps[step - 1] += symbol != z[column]
                    z[column] = symbol
            moves = 0
            for i in range(len(keys.columns)):
                if work.agreement[i] == 0:
                    continue
                leave = rate * (work.agreement[i] / total)
                column = keys.columns[i]
                symbol = _jump(z[column], leave, others, column, step, row_words, seed_words)
                if symbol != z[column]:
                    z[column] = symbol
                    work.jumps[step - 1] += 1
                    if step > 1:
                        moves += _enter(keys, work.here, i, z[column], work)
            if moves > 0:
                ceiling = min(levels.nearest + moves, len(keys.columns))
                levels = _nearest_octave(keys, ceiling, work)


@compiled
def _jump(symbol, leave, others, column, step, row_words, seed_words):
    """Point 6 of the rule: the symbol of a column after the step."""
    w0, w1, w2, _ = _philox(np.uint64(column), np.uint64(step), *row_words, *seed_words)
    if _uniform(w0, w1) < leave:
        other = _choose(w2, others)
        return other + np.uint64(other >= symbol)
    return np.uint64(symbol)


@compiled
def _start(keys, z, work):
    """Moves the home state from the previous query to this one, and starts from there."""
    for i in range(len(keys.columns)):
        _enter(keys, work.home, i, z[keys.columns[i]], work)
    _copy(work.home.symbols, work.here.symbols)
    _copy(work.home.packed, work.here.packed)
    _copy(work.home.rows, work.here.rows)
    _copy(work.home.planes.reshape(-1), work.here.planes.reshape(-1))


@compiled
def _copy(source, target):
    """target[:] = source, which takes Numba two seconds to compile."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled
def _enter(keys, state, i, symbol, work):
    """Writes a symbol into varying column i of a state; returns 1 if that changed any match, else 0."""
    old, new = state.rows[i], find_row(keys.bitmaps, i, symbol)
    if old != new:
        lost = _row(keys.bitmaps, i, old, state.symbols[i], work.scanned[0], work)
        gained = _row(keys.bitmaps, i, new, symbol, work.scanned[1], work)
        exchange(state.planes, lost, gained)
    state.rows[i] = new
    state.symbols[i] = symbol
    if len(keys.packed):
        bit = np.uint64(1) << np.uint64(i % 64)
        state.packed[i // 64] &= ~bit
        state.packed[i // 64] |= bit * np.uint64(symbol)
    return np.int64(old != new)


@compiled
def _row(bitmaps, i, row, symbol, scratch, work):
    """The row of a symbol in varying column i; where the index is not stored, it is made in `scratch`."""
    if bitmaps.stored or row < 0:
        first = bitmaps.starts[row] if row >= 0 else 0
        return IndexRow(bitmaps.blocks, bitmaps.places, first, first + row_blocks(bitmaps, row))
    scan_blocks(bitmaps.columns[i], symbol, scratch)
    return IndexRow(scratch, work.every_place, 0, len(scratch))


@compiled
def _nearest_octave(keys, ceiling, work):
    """The octave of the nearest keys, which match at most `ceiling` symbols."""
    octave = ceiling // OCTAVE
    levels = _open_octave(keys, np.int64(-1), octave, work)
    while levels.nearest < 0:
        octave -= 1
        levels = _open_octave(keys, np.int64(-1), octave, work)
    return levels


@compiled
def _open_octave(keys, nearest, octave, work):
    """Counts the levels of an octave. The count after the last is that of all keys farther away.

    `nearest` is -1 until a key is levels.
    """
    counts = work.octave_counts
    touched = split_octave(work.here.planes, keys.bitmaps.valid, octave, work.masks, work.touched, counts)
    top = OCTAVE * octave + OCTAVE - 1
    while nearest < 0 and top >= OCTAVE * octave:
        if counts[top - OCTAVE * octave] > 0:
            nearest = top
        top -= 1
    first = max(0, nearest - (OCTAVE * octave + OCTAVE - 1))
    known = nearest - OCTAVE * octave + 1
    for g in range(first, known):
        work.level_counts[g] = counts[nearest - g - OCTAVE * octave]
    if nearest >= 0:
        work.level_counts[known] = keys.number
        for g in range(known):
            work.level_counts[known] -= work.level_counts[g]
    return OpenLevels(nearest, octave, touched, first)


@compiled
def _sum_levels(keys, table, levels, work):
    """Points 3 to 5 of the rule: fills `agreement`, returns the sum of all weights; opens octaves as needed.

    What was counted for an earlier step still holds if the query has not moved since.
    """
    while True:
        known = levels.nearest - OCTAVE * levels.octave + 1
        kept = _level_weights(work.level_counts[: known + 1], table, work.weights)
        last = min(kept, known)
        if levels.added < last:
            _count_agreement(keys, levels, last, work)
            levels = OpenLevels(levels.nearest, levels.octave, levels.touched, last)
        if kept <= known:
            return levels, _weigh(work, kept)
        levels = _open_octave(keys, levels.nearest, levels.octave - 1, work)


@compiled
def _count_agreement(keys, levels, last, work):
    """Fills c_g for the levels from levels.added to `last`, all in the open octave, in the cheapest way."""
    rows_cost = _rows_cost(keys.bitmaps, work.here.rows)
    key_cost = _key_cost(keys)
    many = np.empty((OCTAVE, 2), np.int64)  # the levels to count by rows: their masks, their numbers
    by_rows = 0
    for g in range(levels.added, last):
        k = levels.nearest - g - OCTAVE * levels.octave
        work.counts[g] = 0
        if work.level_counts[g] * key_cost > rows_cost:
            many[by_rows, 0] = k
            many[by_rows, 1] = g
            by_rows += 1
        elif work.level_counts[g] > 0:
            _add_few(keys, work.masks[k], work.touched[: levels.touched], work.counts[g], work)
    if by_rows:
        clear_untouched(work.masks, work.touched, levels.touched)
        _add_many(keys.bitmaps, work.here, many[:by_rows], work)


@compiled
def _rows_cost(bitmaps, rows):
    """What it costs to count a level by rows, in thirds of a nanosecond of a Zen 4."""
    blocks = 0
    for row in rows:
        blocks += row_blocks(bitmaps, row)
    return 3 * blocks


@compiled
def _key_cost(keys):
    """What it costs to count one key of a level by itself, in the same unit."""
    if len(keys.packed):
        return 2 * keys.packed.shape[1]
    return 6 + keys.tokens.shape[1] // 8


@compiled
def _add_few(keys, mask, touched, counts, work):
    """Counts a level of few keys: one by one."""
    listed = work.listed[: list_keys(mask, touched, work.listed)]
    if len(keys.packed):
        add_by_packed_keys(keys.packed, work.here.packed, listed, work.sums, counts)
    else:
        add_by_keys(keys.tokens, work.here.symbols, listed, work.tally, counts)


@compiled
def _add_many(index, here, many, work):
    """Counts levels of many keys: by rows."""
    rows, masks, counts = here.rows, work.masks, work.counts
    if index.stored:
        add_by_rows(index.blocks, index.places, index.starts, rows, masks, many, counts)
    else:
        scratch, places = work.scanned[0], work.every_place
        add_by_scanned_rows(index.columns, rows, here.symbols, masks, many, counts, scratch, places)


@compiled
def _weigh(work, kept):
    """agreement_i = sum_g W_g c_g[i]; returns sum_g W_g n_g."""
    total = 0
    work.agreement[:] = 0
    for g in range(kept):
        if work.level_counts[g] > 0:
            total += work.weights[g] * work.level_counts[g]
            _add_weighted(work.counts[g], work.weights[g], work.agreement)
    return total


@compiled
def _add_weighted(counts, weight, agreement):
    for i in range(len(counts)):
        agreement[i] += weight * counts[i]
