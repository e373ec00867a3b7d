"""Proves, in one pass over the keys, that only a query's data row has weight in its whole trajectory.

Suppose that all steps before s = 1 are computed as if only the query's row d had weight: a position leaves
once, while it has the symbol of d. For another key e let gap(e) = h(e, z) - h(d, z). Going back from the
state z_1 of the last step to an earlier state, each undone change brings z nearer to d by 1, and nearer to e
by at most 1. So gap(e) only grows towards t = 1, as gamma does. If gap(e) >= 0 at z_1, the sum of the weights
of all other keys, relative to the weight of d, therefore never exceeds

    R = sum over e of gamma(1/T)^-gap(e) <= (M - 1) gamma(1/T)^-(the least gap),

and w_i differs by at most R from 1 where z has the symbol of d, and from 0 elsewhere. If R + `rule.margin` is
less than the distance of every draw from the threshold of its decision, all decisions were exact
(docs/method.md, "Backward pairing (Algorithm 1)", A certificate).
"""

import numpy as np

from pairflow.pairing.cpu import lists
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.index import find_row
from pairflow.pairing.cpu.numbers import draw, other

TRIES = 8  # after so many failures without a success, a thread stops trying


@compiled
def pair_by_data_row(keys, z, row_words, seed_words, rates, table, margin, others, work):
    """Move the query z (N,) to its source in one go, if only its own data row has weight on the whole way.

    The module explains how that is proved (the certificate). If it cannot be proved, z stays unchanged, and
    one of the `work.tries` is used up. `pairing.rule` gives the `rates` of all steps, the `table` of step 1,
    and the error bound `margin`; `others` is K - 1. Returns whether z was moved.
    """
    # `weight` is the bound R, `slack` the least distance of a draw from its threshold, relative to the rate.
    data_row, weight, slack = work.data_row, 1.0, 1.0
    for column in range(len(z)):
        data_row[column] = z[column]
    for step in range(len(rates), 0, -1):
        if step == 1:
            weight = _weight_of_others(keys, z, data_row, table, work)
            # More draws can only lower `slack`, so the certificate has already failed here.
            if weight + margin >= slack:
                break
        draw(work.positions, np.uint64(step), row_words, seed_words, work.words, work.uniforms)
        rate = rates[step - 1]
        for column in range(len(z)):
            drawn = work.uniforms[column]
            if drawn >= rate:
                continue
            share, leaves = drawn / rate, z[column] == data_row[column]
            if keys.constants[column] < 0:  # in constant columns w_i is exactly 1 or 0
                slack = min(slack, 1.0 - share if leaves else share)
            if leaves:
                z[column] = other(z[column], column, step, row_words, seed_words, others)
    if weight + margin < slack:
        work.tries[0] = TRIES
        return True
    work.tries[0] -= 1
    for column in range(len(z)):
        z[column] = data_row[column]
    return False


@compiled
def _weight_of_others(keys, z, data_row, table, work):
    """Return a bound on the weight of all other keys, relative to `data_row`, in step 1 at the state z.

    `data_row` (N,) are the symbols of a key. If it is the only nearest key of z (N,), the bound is
    (M - 1) gamma^-gap: M is the number of keys, and the second nearest is farther by `gap`. Else it is 1.
    `table` has gamma^-gap for each gap. `work.here` is overwritten.
    """
    for column in range(len(z)):
        if keys.constants[column] >= 0 and keys.constants[column] != data_row[column]:
            return 1.0
    # `here` is free: if the certificate fails, `home` is copied into it before it is used.
    state, matches = work.here, 0
    for i in range(len(keys.columns)):
        column = keys.columns[i]
        state.rows[i] = find_row(keys.rows, i, z[column])
        matches += z[column] == data_row[column]
    lists.restart(keys.lists, state.counters, keys.number, state.rows)
    if lists.greatest(state.counters, keys.number) != matches:
        return 1.0
    nearest, second, number = 0, 0, 0
    for key in range(keys.number):
        count = int(state.counters[key])
        if count == matches:
            nearest, number = key, number + 1
        else:
            second = max(count, second)
    for i in range(len(keys.columns)):
        if keys.tokens[nearest, i] != data_row[keys.columns[i]]:
            return 1.0
    return (keys.number - 1) * table[matches - second] if number == 1 else 1.0
