"""A proof that only a query's own row counts in its whole walk, by one pass over the keys.

Let all steps before s = 1 be walked as if only the own row d had weight: a position leaves once, while it
still has the symbol of d. For another key e let gap(e) = h(e, z) - h(d, z). Go back from the state z_1 of the
last step to an earlier one: each position that is undone brings z nearer to d by 1, and to e by at most 1. So
gap(e) only grows towards t = 1, and gamma grows, too. If gap(e) >= 0 at z_1, the weights of all other keys,
relative to that of d, therefore never exceed

    R = sum over e of gamma(1/T)^-gap(e) <= (M - 1) gamma(1/T)^-(the least gap),

and w_i differs by at most R from 1 where z has the symbol of d, and from 0 elsewhere. If R and `rule.margin`
are less than the distance of every draw from the two decisions, all decisions were right, byte for byte
(docs/method.md, "Backward pairing (Algorithm 1)", A certificate).
"""

import numpy as np

from pairflow.pairing.cpu import lists
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.index import find_row
from pairflow.pairing.cpu.numbers import draw, other

TRUST = 8  # tries that may fail before no more are made


@compiled
def walk_by_own_row(keys, z, row_words, seed_words, rates, table, margin, others, work):
    """Walks z (N,) in place to its source, if it can prove that no other key counts; else leaves it as it is.

    `table` is that of step 1. Returns whether it could, and adds to `work.jumps` in that case.
    """
    own, weight, room = work.own, 1.0, 1.0
    for column in range(len(z)):
        own[column] = z[column]
    for step in range(len(rates), 0, -1):
        if step == 1:
            weight = _weight_of_others(keys, z, own, table, work)
            if weight + margin >= room:
                break
        draw(work.positions, np.uint64(step), row_words, seed_words, work.words, work.uniforms)
        work.own_jumps[step - 1] = 0
        rate = rates[step - 1]
        for column in range(len(z)):
            drawn = work.uniforms[column]
            if drawn >= rate:
                continue
            share, leaves = drawn / rate, z[column] == own[column]
            if keys.constants[column] < 0:  # in the others w_i is 1 or 0 exactly
                room = min(room, 1.0 - share if leaves else share)
            if leaves:
                z[column] = other(z[column], column, step, row_words, seed_words, others)
                work.own_jumps[step - 1] += 1
    if weight + margin < room:
        work.trust[0] = TRUST
        for step in range(len(rates)):
            work.jumps[step] += work.own_jumps[step]
        return True
    work.trust[0] -= 1
    for column in range(len(z)):
        z[column] = own[column]
    return False


@compiled
def _weight_of_others(keys, z, own, table, work):
    """The bound R at the state z of step 1; 1 if another key is as near as the row `own`, or `own` no key."""
    for column in range(len(z)):
        if keys.constants[column] >= 0 and keys.constants[column] != own[column]:
            return 1.0
    state, matches = work.here, 0
    for i in range(len(keys.columns)):
        column = keys.columns[i]
        state.rows[i] = find_row(keys.rows, i, z[column])
        matches += z[column] == own[column]
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
        if keys.tokens[nearest, i] != own[keys.columns[i]]:
            return 1.0
    return (keys.number - 1) * table[matches - second] if number == 1 else 1.0
