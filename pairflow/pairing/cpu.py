"""The exact CPU engine of Algorithm 1: Numba kernels on plain threads, bit for bit the reference."""

import os
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
from tqdm import tqdm

from pairflow import rng
from pairflow.pairing import levels
from pairflow.pairing.compiled import compiled

_BLOCK = 1 << 30  # comparisons per task, a fraction of a second: Ctrl-C waits for one task at most
_TILE = 2048  # keys whose weights stay in the first-level cache

_philox = compiled(rng.philox4x32)
_uniform = compiled(rng.uniform)
_choose = compiled(rng.choose)
_split = compiled(rng.split)
_level_weights = compiled(levels.level_weights)


def pair_rows(
    data,
    queries,
    row_numbers,
    *,
    vocabulary_size: int,
    steps: int,
    seed: int,
    threads: int | None,
    progress: bool,
) -> np.ndarray:
    """Algorithm 1, backward pairing: the source states (B, N) of `queries` (B, N) among keys `data` (M, N).

    `row_numbers` (B,) are the queries' global rows, which their random numbers depend on. `levels` states the
    rule. The result does not depend on the number of `threads` (None: as many as the process may use).
    `progress` shows a bar.
    """
    keys, length = data.shape
    dtype = np.min_scalar_type(vocabulary_size - 1)
    data = np.ascontiguousarray(data, dtype=dtype)
    columns = np.ascontiguousarray(data.T)
    sources = queries.astype(dtype)
    row_numbers = np.asarray(row_numbers, dtype=np.uint64)
    rates = levels.step_rates(steps, vocabulary_size)
    tables = levels.level_tables(steps, length, vocabulary_size)

    def pair_block(start: int, stop: int) -> int:
        block, numbers = sources[start:stop], row_numbers[start:stop]
        _walk(data, columns, block, numbers, rates, tables, np.uint64(seed), vocabulary_size)
        return stop - start

    size = max(1, _BLOCK // (keys * length * steps))
    pool = ThreadPoolExecutor(threads or available_cpus())
    try:
        starts = range(0, len(sources), size)
        tasks = [pool.submit(pair_block, start, min(start + size, len(sources))) for start in starts]
        with tqdm(total=len(sources), desc="pairing", unit="row", disable=not progress) as bar:
            for task in as_completed(tasks):
                bar.update(task.result())
    finally:
        pool.shutdown(cancel_futures=True)
    return sources.astype(queries.dtype)


def available_cpus() -> int:
    """The number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@compiled
def _walk(data, columns, states, row_numbers, rates, tables, seed, vocabulary_size):
    """Walks `states` (b, N) in place from the data at t = 1 to the source at t = 0; `columns` is data.T."""
    keys, length = data.shape
    distance = np.empty(keys, np.uint16)
    counts = np.empty(length + 1, np.int64)  # of keys, by distance
    weight_at = np.empty(length + 1, np.int64)  # of a key, by distance
    agreement = np.empty(length, np.int64)
    others = np.uint64(vocabulary_size - 1)
    seed_low, seed_high = _split(seed)
    for query in range(len(states)):
        z = states[query]
        row_low, row_high = _split(row_numbers[query])
        distance[:] = 0
        for i in range(length):
            _add_mismatches(columns[i], z[i], distance)
        for step in range(len(rates), 0, -1):
            nearest = _count_levels(distance, counts)
            weight_at[:] = 0
            end = nearest + _level_weights(counts[nearest:], tables[step - 1], weight_at[nearest:])
            if counts[nearest:end].sum() < keys // 5:
                _add_few(data, z, distance, weight_at, agreement)
            else:
                _add_many(columns, z, distance, weight_at, agreement)
            total = (counts * weight_at).sum()
            for i in range(length):
                w0, w1, w2, _ = _philox(np.uint64(i), np.uint64(step), row_low, row_high, seed_low, seed_high)
                if _uniform(w0, w1) < rates[step - 1] * (agreement[i] / total):
                    symbol = _choose(w2, others)
                    symbol += np.uint64(symbol >= z[i])
                    _move(columns[i], z[i], symbol, distance)
                    z[i] = symbol


@compiled
def _add_mismatches(column, symbol, distance):
    for key in range(len(column)):
        distance[key] += column[key] != symbol


@compiled
def _move(column, old, new, distance):
    """Updates the distances (M,) of all keys when the query's symbol in this column changes."""
    new = column.dtype.type(new)
    for key in range(len(column)):
        distance[key] += np.uint16(column[key] == old) - np.uint16(column[key] == new)


@compiled
def _count_levels(distance, counts):
    """Fills `counts` (N+1,) with the number of keys at each distance and returns the smallest distance."""
    lanes = np.zeros(
        (4, len(counts)), np.int64
    )  # so that neighbours of one level need not wait for each other
    for key in range(len(distance)):
        lanes[key & 3, distance[key]] += 1
    counts[:] = lanes.sum(axis=0)
    nearest = 0
    while counts[nearest] == 0:
        nearest += 1
    return nearest


@compiled
def _add_few(data, z, distance, weight_at, agreement):
    """agreement_i = sum_m W(m) [d_m^i = z^i], row by row: fast where most keys have weight 0."""
    agreement[:] = 0
    for key in range(len(distance)):
        weight = weight_at[distance[key]]
        if weight > 0:
            for i in range(len(z)):
                agreement[i] += weight * (data[key, i] == z[i])


@compiled
def _add_many(columns, z, distance, weight_at, agreement):
    """The same sums, column by column: fast where most keys count."""
    agreement[:] = 0
    weights = np.empty(_TILE, np.int64)
    for start in range(0, len(distance), _TILE):
        size = min(_TILE, len(distance) - start)
        for key in range(size):
            weights[key] = weight_at[distance[start + key]]
        for i in range(len(z)):
            agreement[i] += _masked_sum(columns[i, start : start + size], z[i], weights)


@compiled
def _masked_sum(column, symbol, weights):
    total = 0
    for key in range(len(column)):
        total += weights[key] if column[key] == symbol else 0
    return total
