"""Which positions of a query change in a step, decided with as few counts as possible.

A position leaves its symbol if its draw is below rate w_i (point 6 of `pairing.rule`), and w_i <= 1. The draw
does not depend on w_i, so it comes first: a position with a draw of at least the rate stays, and nothing is
counted for it. The remaining positions are *candidates*: about rate A of the A varying positions.

Levels are counted from the nearest on. With A_i and S the sums of table[g] over the keys seen so far that
agree at i, and over all keys seen, and R = (keys not yet seen) table[next level],

    A_i / (S + R) <= w_i <= (A_i + R) / (S + R),

because no farther key weighs more than table[next level]. Once the draw is outside of these bounds, the
candidate is decided and no longer counted. The rule's w_i differs from the exact quotient by less than
`rule.margin`, so the bounds are widened by it. Candidates that are still undecided where the rule stops are
decided by the rule's integers. So every decision agrees with the rule.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing import rule
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.matches import count_level, greatest_possible, open_level

_level_weights = compiled(rule.level_weights)


class Candidates(NamedTuple):
    """Memory for the candidates of one step: positions that may leave their symbol.

    There is at most one for each of the A varying columns. `columns`, `draws` and `sums` begin with the
    undecided candidates; their sums are of the weights of the keys seen so far that agree at the position.
    """

    columns: np.ndarray  # (A,) int64: varying columns
    draws: np.ndarray  # (A,): uniform numbers
    sums: np.ndarray  # (A,)
    agreements: np.ndarray  # (A,) int64: the rule's integers agreement_i
    tally: np.ndarray  # (A,) int64: c_g[i] of one level
    leaving: np.ndarray  # (A,) int64: the columns that leave


def candidates_for(columns: int) -> Candidates:
    """Return empty memory for the candidates among A = `columns` varying columns."""
    kinds = (np.int64, np.float64, np.float64, np.int64, np.int64, np.int64)
    return Candidates(*(np.zeros(columns, kind) for kind in kinds))


@compiled
def find_candidates(keys, rows, uniforms, rate, candidates):
    """Write to `candidates` the positions whose draw is below the rate: only they may leave their symbol.

    Each gets its draw and a sum of 0. `rows` (A,) are the index rows of the query's symbols; a symbol that no
    key has is left out, because it never leaves. `uniforms` (N,) are the draws, the random numbers of the
    step. Returns the number of candidates.
    """
    count = 0
    for i in range(len(rows)):
        drawn = uniforms[keys.columns[i]]
        if drawn < rate and rows[i] != keys.rows.none:
            candidates.columns[count] = i
            candidates.draws[count] = drawn
            candidates.sums[count] = 0.0
            count += 1
    return count


@compiled
def decide(keys, table, rate, margin, ceiling, count, work):
    """Decide which of the `count` >= 1 candidates leave their symbol; fill `candidates.leaving` in `work`.

    `work` also has the query's state. `table` has the weight of a key in each level, and `margin` bounds the
    error of w_i; both are from `pairing.rule`. No key (data row) agrees with the query in more than `ceiling`
    columns. Returns the number of columns that leave, and in how many the nearest keys agree.
    """
    here, candidates = work.here, work.candidates
    nearest = greatest_possible(keys, here, ceiling)
    number = open_level(keys, here, nearest, work.scratch)
    while number == 0:
        nearest -= 1
        number = open_level(keys, here, nearest, work.scratch)
    leaving, level = 0, 0
    left, total = keys.number, 0.0
    while True:
        work.level_sizes[level] = number
        if number > 0:
            columns = candidates.columns[:count]
            count_level(keys, here, nearest - level, number, work.scratch, columns, candidates.tally)
            for n in range(count):
                candidates.sums[n] += candidates.tally[n] * table[level]
        total += number * table[level]
        left -= number
        level += 1
        # If no keys are left, `level` may lie behind the end of the table.
        rest = left * table[level] if left > 0 else 0.0
        count, leaving = _settle(candidates, count, leaving, rate, margin, total, rest)
        if count == 0:
            return leaving, nearest
        if rest <= rule.TOLERANCE * total:
            work.level_sizes[level] = left  # all farther keys: the rule stops by the number of keys left
            return _settle_exactly(keys, table, rate, nearest, level, count, leaving, work), nearest
        number = open_level(keys, here, nearest - level, work.scratch)


@compiled
def _settle(candidates, count, leaving, rate, margin, total, rest):
    """Decide the candidates for which bounds on w_i, the weighted share of agreeing keys, suffice.

    `total` is the weight of the keys seen, `rest` a bound on the weight of the others, and `margin` the error
    of w_i. The first `count` candidates are undecided, and `leaving` have been found to leave. Returns both
    numbers after the decisions.
    """
    undecided = 0
    # One division serves all candidates: its rounding is far below `margin`, which widens the bounds.
    share = 1.0 / (total + rest)
    for n in range(count):
        column, drawn, agreeing = candidates.columns[n], candidates.draws[n], candidates.sums[n]
        if drawn < rate * (agreeing * share - margin):
            candidates.leaving[leaving] = column
            leaving += 1
        elif drawn < rate * ((agreeing + rest) * share + margin):
            # `undecided` is at most n, so no candidate is overwritten before it is read.
            candidates.columns[undecided], candidates.draws[undecided] = column, drawn
            candidates.sums[undecided] = agreeing
            undecided += 1
    return undecided, leaving


@compiled
def _settle_exactly(keys, table, rate, nearest, levels, count, leaving, work):
    """Decide the undecided candidates by the integers of `pairing.rule`, which stops after `levels` levels.

    The first `count` candidates are undecided, and `leaving` have been found to leave; returns the number
    that leave in the end. `work.level_sizes` has the sizes of these levels, and then the number of all
    farther keys. Only about one decision in a billion gets here, so counting the levels again costs nothing.
    """
    candidates = work.candidates
    kept = _level_weights(work.level_sizes[: levels + 1], table, work.weights)
    for n in range(count):
        candidates.agreements[n] = 0
    total = 0
    for g in range(kept):
        number = open_level(keys, work.here, nearest - g, work.scratch)
        count_level(
            keys, work.here, nearest - g, number, work.scratch, candidates.columns[:count], candidates.tally
        )
        for n in range(count):
            candidates.agreements[n] += work.weights[g] * candidates.tally[n]
        total += work.weights[g] * number
    for n in range(count):
        # The brackets are part of the rule: w_i is one division, and another order would round differently.
        if candidates.draws[n] < rate * (candidates.agreements[n] / total):
            candidates.leaving[leaving] = candidates.columns[n]
            leaving += 1
    return leaving
