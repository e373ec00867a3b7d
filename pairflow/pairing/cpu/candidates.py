"""Which positions of a query leave in a step, from as few counts as that takes.

A position leaves if its draw is below rate w_i (point 6 of `pairing.rule`), and w_i <= 1. The draw does not
depend on w_i. So it comes first: where it is not below the rate, nothing can happen, and nothing is counted.
The other positions are *candidates*: rate A of the A varying positions.

Levels are opened from the nearest on. With A_i and S the sums of table[g] over the keys seen so far that
agree at i, and over all keys seen, and R = (keys not yet seen) table[next level],

    A_i / (S + R) <= w_i <= (A_i + R) / (S + R),

because no farther key weighs more than table[next level]. Once the draw lies outside of these bounds, the
candidate is decided, and its keys are no longer counted. The rule's own w_i differs from the exact quotient
by less than `rule.margin`, by which the bounds are widened. A candidate that is undecided where the rule
stops is decided by the rule's integers. So every decision is the rule's.
"""

from typing import NamedTuple

import numpy as np

from pairflow import rng
from pairflow.pairing import rule
from pairflow.pairing.cpu.agreement import count_by_keys, count_by_row, list_keys
from pairflow.pairing.cpu.bitmaps import index_row, row_blocks
from pairflow.pairing.cpu.compiled import compiled, inlined
from pairflow.pairing.cpu.counters import OCTAVE, clear_untouched, split_octave

_KEY_COST = 8  # of listing a key; counting a block of the index, and comparing a token, cost 1

_philox = compiled(rng.philox4x32)
_uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)
_level_weights = compiled(rule.level_weights)


class Candidates(NamedTuple):
    """Scratch of one step; entry j belongs to its j-th candidate, and there are at most A.

    `sums` are the A_i above. `undecided` lists the candidates j that still are.
    """

    columns: np.ndarray  # (A,) int64: the varying columns
    draws: np.ndarray  # (A,): their uniform numbers
    choices: np.ndarray  # (A,) uint64: y of point 6
    leaves: np.ndarray  # (A,) bool
    sums: np.ndarray  # (A,)
    undecided: np.ndarray  # (A,) int64
    tally: np.ndarray  # (A,) int64: the keys of one level that agree, for each undecided candidate


def candidates_for(columns: int) -> Candidates:
    """Room for the candidates among A = `columns` columns."""
    kinds = (np.int64, np.float64, np.uint64, np.bool_, np.float64, np.int64, np.int64)
    return Candidates(*(np.zeros(columns, kind) for kind in kinds))


@compiled
def draw(column, step, row_words, seed_words, others):
    """The uniform number of a position and y of point 6, its choice among the `others` symbols."""
    w0, w1, w2, _ = _philox(np.uint64(column), np.uint64(step), *row_words, *seed_words)
    return _uniform(w0, w1), _choose(w2, others)


@compiled
def find_candidates(keys, rows, rate, step, row_words, seed_words, others, found):
    """Fills columns, draws and choices of `found`; returns the number of candidates.

    rows (A,): of the query's symbols in the index. Where no key holds the symbol, w_i is 0.
    """
    count = 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            drawn, choice = draw(keys.columns[i], step, row_words, seed_words, others)
            if drawn < rate:
                found.columns[count] = i
                found.draws[count] = drawn
                found.choices[count] = choice
                count += 1
    return count


@compiled
def decide(keys, table, rate, margin, ceiling, count, work):
    """Fills `leaves` of the first `count` candidates; returns the match count of the nearest keys.

    No key has a greater match count than `ceiling`.
    """
    found = work.candidates
    for j in range(count):
        found.undecided[j] = j
        found.sums[j] = 0.0
    nearest, octave = np.int64(-1), ceiling // OCTAVE
    left, total = keys.number, 0.0
    while True:
        numbers = work.octave_counts
        touched = split_octave(
            work.here.planes, keys.bitmaps.valid, octave, work.masks, work.touched, numbers
        )
        for k in range(OCTAVE - 1, -1, -1):
            if nearest < 0:
                if numbers[k] == 0:
                    continue
                nearest = OCTAVE * octave + k
            level = nearest - OCTAVE * octave - k
            work.level_counts[level] = numbers[k]
            if numbers[k] > 0:
                _count_level(keys, numbers[k], work.masks[k], touched, found, count, work)
            for n in range(count):
                j = found.undecided[n]
                work.counts[level, j] = found.tally[n] if numbers[k] > 0 else 0
                found.sums[j] += work.counts[level, j] * table[level]
            total += numbers[k] * table[level]
            left -= numbers[k]
            rest = left * table[level + 1] if left > 0 else 0.0
            count = _settle(found, count, rate, margin, total, rest)
            if count > 0 and rest <= rule.TOLERANCE * total:
                _settle_exactly(found, count, rate, table, level + 1, work)
                count = 0
            if count == 0:
                return nearest
        octave -= 1


@compiled
def _settle(found, count, rate, margin, total, rest):
    """Decides candidates by the bounds above; keeps the others undecided and returns their number."""
    kept = 0
    share = 1.0 / (total + rest)
    for n in range(count):
        j = found.undecided[n]
        if found.draws[j] < rate * (found.sums[j] * share - margin):
            found.leaves[j] = True
        elif found.draws[j] >= rate * ((found.sums[j] + rest) * share + margin):
            found.leaves[j] = False
        else:
            found.undecided[kept] = j
            kept += 1
    return kept


@compiled
def _settle_exactly(found, count, rate, table, levels, work):
    """Decides the undecided candidates by points 3 to 6 of the rule, after whose last level it is called."""
    kept = _level_weights(work.level_counts[:levels], table, work.weights)
    total = 0
    for g in range(kept):
        total += work.weights[g] * work.level_counts[g]
    for n in range(count):
        j = found.undecided[n]
        agreement = 0
        for g in range(kept):
            agreement += work.weights[g] * work.counts[g, j]
        found.leaves[j] = found.draws[j] < rate * (agreement / total)


@inlined
def _count_level(keys, number, mask, touched, found, count, work):
    """Fills `tally` for the undecided candidates from a level of `number` keys, in the cheaper way."""
    blocks = 0
    for n in range(count):
        blocks += row_blocks(keys.bitmaps, work.here.rows[found.columns[found.undecided[n]]])
    if number * (_KEY_COST + count) <= blocks:
        listed = work.listed[: list_keys(mask, work.touched[:touched], work.listed)]
        count_by_keys(
            keys.tokens, listed, work.here.symbols, found.columns, found.undecided[:count], found.tally
        )
        return
    clear_untouched(mask, work.touched, touched)
    for n in range(count):
        i = found.columns[found.undecided[n]]
        row, symbol = work.here.rows[i], work.here.symbols[i]
        found.tally[n] = count_by_row(
            index_row(keys.bitmaps, i, row, symbol, work.scanned[0], work.every_place), mask
        )
