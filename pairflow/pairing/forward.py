"""Sampling along the closed-form forward velocity: from uniform noise to the data, without a network.

    v_fwd(x^i, z) = kappa' / (1 - kappa) * (p_1|t(x^i | z) - [x^i = z^i])

kappa(t) = t is the probability that a position holds data. A step of size 1/T at t = s/T, s = 0..T-1,
replaces each position independently with probability (1/T) kappa' / (1 - kappa) = 1 / (T - s), by a draw from
p_1|t(x^i | z) = sum_m weight_m(z) [d_m^i = x^i]: the symbol of a data point m, drawn by its weight. The last
step replaces all positions. `pairing.rule` defines the weights.
(PairFlow, the closed-form forward velocity; docs/method.md, "Forward construction".)
"""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.pairing import rule
from pairflow.pairing.cpu.compiled import compiled
from pairflow.runtime.threads import run_blocks

_BLOCK = 1 << 30  # comparisons per task, a fraction of a second
_FORWARD = 1 << 31  # added to a step's number, so that no random numbers are the same as in Algorithm 1

_philox = compiled(rng.philox4x32)
_uniform = compiled(rng.uniform)
_split = compiled(rng.split)
_level_weights = compiled(rule.level_weights)
_compiled = partial(compiled, makes_arrays=True)


def sample(
    data: np.ndarray,
    count: int,
    *,
    vocabulary_size: int,
    steps: int,
    seed: int,
    threads: int | None = None,
    progress: bool = True,
    first: int = 0,
) -> np.ndarray:
    """Draw samples along the closed-form forward velocity of the data (PairFlow), without a network.

    Args:
        data: tokens (M, N).
        count: k, the number of samples.
        vocabulary_size: K, the number of symbols.
        steps: T, the number of steps.
        seed: every random number follows from it and from the sample's number.
        threads: number of CPU threads, at most one per CPU that the process may use; None uses as many.
        progress: whether to show a progress bar.
        first: the number of the first sample. Sample j starts at row j of `rng.uniform_tokens`.

    Returns:
        (k, N) tokens.
    """
    keys, length = data.shape
    states = rng.uniform_tokens(seed, np.arange(first, first + count), length, vocabulary_size)
    data = np.ascontiguousarray(data, dtype=states.dtype)
    columns = np.ascontiguousarray(data.T)
    tables = rule.level_tables(steps, length, vocabulary_size, first=0)

    def sample_block(rows: slice) -> None:
        _sample(data, columns, states[rows], first + rows.start, tables, np.uint64(seed))

    block = max(1, _BLOCK // (keys * length * steps))
    run_blocks(sample_block, count, block, threads=threads, progress=progress, name="forward")
    return states


def coverage(samples: ArrayLike, data: ArrayLike) -> dict[str, float]:
    """Measure which part of the data the samples reach (docs/method.md, "Coverage").

    Args:
        samples: tokens (k, N).
        data: tokens (M, N).

    Returns:
        `unique_reached`, the number of distinct data points among the samples; `coverage`, the same divided
        by M; and `coverage_predicted`, 1 - (1 - 1/M)^k, the expected coverage of independent draws.
    """
    samples, data = np.asarray(samples), np.asarray(data)
    distinct = {row.tobytes() for row in np.ascontiguousarray(data, dtype=np.int32)}
    reached = distinct & {row.tobytes() for row in np.ascontiguousarray(samples, dtype=np.int32)}
    return {
        "unique_reached": float(len(reached)),
        "coverage": len(reached) / len(data),
        "coverage_predicted": 1 - (1 - 1 / len(data)) ** len(samples),
    }


@_compiled
def _sample(data, columns, states, first, tables, seed):
    """Move `states` (b, N) in place from noise at t = 0 to data at t = 1.

    `columns` is `data` transposed, and `first` the number of the first state. `tables` (T, N+1) are the
    levels' weights in forward steps (`rule.level_tables` with `first=0`).
    """
    keys, length = data.shape
    steps = len(tables)
    distance = np.empty(keys, np.uint16)
    counts = np.empty(length + 1, np.int64)
    weight_at = np.empty(length + 1, np.int64)
    # For each position that is replaced: a number below the sum of weights, and the position.
    wanted = np.empty(length, np.int64)
    positions = np.empty(length, np.int64)
    seed_low, seed_high = _split(seed)
    for query in range(len(states)):
        z = states[query]
        row_low, row_high = _split(np.uint64(first + query))
        distance[:] = 0
        for i in range(length):
            distance += (columns[i] != z[i]).astype(np.uint16)
        for step in range(steps):
            total = _fill_weights(distance, tables[step], counts, weight_at)
            replaced = 0
            for i in range(length):
                counter = np.uint64(step + _FORWARD)
                w0, w1, w2, w3 = _philox(np.uint64(i), counter, row_low, row_high, seed_low, seed_high)
                if _uniform(w0, w1) * (steps - step) < 1:
                    wanted[replaced] = np.int64(_uniform(w2, w3) * total)
                    positions[replaced] = i
                    replaced += 1
            _replace(data, columns, z, distance, weight_at, wanted[:replaced], positions[:replaced])


@_compiled
def _fill_weights(distance, table, counts, weight_at):
    """Write the weight of a key at each distance to `weight_at` (N+1,); return the sum over all keys.

    `distance` (M,) has each key's distance from the state, and `table` (N+1,) the step's weight gamma^-g of a
    key g farther than the nearest. `counts` (N+1,) gets the number of keys at each distance.
    """
    counts[:] = 0
    for key in range(len(distance)):
        counts[distance[key]] += 1
    nearest = 0
    while counts[nearest] == 0:
        nearest += 1
    weight_at[:] = 0
    _level_weights(counts[nearest:], table, weight_at[nearest:])
    return (counts * weight_at).sum()


@_compiled
def _replace(data, columns, z, distance, weight_at, wanted, positions):
    """Give z (N,), at positions[j], the symbol of the first key whose cumulative weight exceeds wanted[j].

    `weight_at` (N+1,) has the weight of a key at each distance. `distance` (M,), of each key from z, is
    updated.
    """
    order = np.argsort(wanted)  # so that one pass over the keys finds all of them
    symbols = np.empty(len(wanted), z.dtype)
    passed = 0
    done = 0
    for key in range(len(distance)):
        passed += weight_at[distance[key]]
        while done < len(order) and wanted[order[done]] < passed:
            symbols[order[done]] = data[key, positions[order[done]]]
            done += 1
        if done == len(order):
            break
    # Distances change only now: all positions of a step are drawn by the weights at its beginning.
    for j in range(len(positions)):
        i = positions[j]
        column, old, new = columns[i], z[i], symbols[j]
        if old != new:
            for key in range(len(distance)):
                distance[key] += np.uint16(column[key] == old) - np.uint16(column[key] == new)
            z[i] = new
