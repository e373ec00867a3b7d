"""The exact CPU engine of Algorithm 1: bit for bit the reference, without ever comparing two rows."""

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from pairflow import rng
from pairflow.pairing import levels
from pairflow.pairing.agreement import add_by_keys, add_by_packed_keys, add_by_rows, list_keys
from pairflow.pairing.bitmaps import find_row, scan_blocks
from pairflow.pairing.block import BITS, zero_blocks
from pairflow.pairing.compiled import compiled
from pairflow.pairing.counters import OCTAVE, clear_untouched, exchange, planes_for, split_octave
from pairflow.pairing.keys import prepare, sorted_rows

_BLOCK = 1 << 33  # comparisons per task, a fraction of a second: Ctrl-C waits for one task at most

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
    dtype = np.min_scalar_type(vocabulary_size - 1)
    keys = prepare(data.astype(dtype), vocabulary_size)
    order = sorted_rows(queries.astype(dtype))  # so that a query has much in common with the one before it
    states = queries[order].astype(dtype)
    numbers = np.asarray(row_numbers, dtype=np.uint64)[order]
    rates = levels.step_rates(steps, vocabulary_size)
    tables = levels.level_tables(steps, data.shape[1], vocabulary_size)

    def pair_block(start: int, stop: int) -> int:
        workspace = _workspace(keys)
        _walk(
            keys,
            states[start:stop],
            numbers[start:stop],
            rates,
            tables,
            np.uint64(seed),
            vocabulary_size,
            workspace,
        )
        return stop - start

    size = max(1, _BLOCK // (data.size * steps))
    pool = ThreadPoolExecutor(threads or available_cpus())
    try:
        starts = range(0, len(states), size)
        tasks = [pool.submit(pair_block, start, min(start + size, len(states))) for start in starts]
        with tqdm(total=len(states), desc="pairing", unit="row", disable=not progress) as bar:
            for task in as_completed(tasks):
                bar.update(task.result())
    finally:
        pool.shutdown(cancel_futures=True)
    sources = np.empty_like(queries)
    sources[order] = states
    return sources


def available_cpus() -> int:
    """The number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Workspace(NamedTuple):
    """What one thread writes to. L levels are at most A + 1, and eight more to complete an octave."""

    home: np.ndarray  # (blocks, P, 8): the match counters of the query before it moves
    planes: np.ndarray  # (blocks, P, 8): the match counters
    rows: np.ndarray  # (A,): rows of the index for the symbols
    state: np.ndarray  # (A',): the symbols in the varying columns, padded
    packed_state: np.ndarray  # (bits, blocks, 8)
    masks: np.ndarray  # (8, blocks, 8): the keys of each level of an octave
    octave_counts: np.ndarray  # (8,)
    touched: np.ndarray  # (blocks,)
    listed: np.ndarray  # (M,): the keys of one level
    level_counts: np.ndarray  # (L,): n_g
    weights: np.ndarray  # (L,): W_g
    counts: np.ndarray  # (L, A''): c_g[i]
    agreement: np.ndarray  # (A'',)
    sums: np.ndarray
    blocks: np.ndarray
    other_blocks: np.ndarray
    places: np.ndarray


def _workspace(keys):
    blocks, active = len(keys.bitmaps.valid), len(keys.columns)
    planes = planes_for(active)
    padded = -(-active // BITS) * BITS if len(keys.packed) else keys.tokens.shape[1]
    return _Workspace(
        home=zero_blocks(blocks, planes),
        planes=zero_blocks(blocks, planes),
        rows=np.full(active, -1),
        state=np.zeros(keys.tokens.shape[1], keys.tokens.dtype),
        packed_state=zero_blocks(*keys.packed.shape[1:3]),
        masks=zero_blocks(OCTAVE, blocks),
        octave_counts=np.zeros(OCTAVE, np.int64),
        touched=np.zeros(blocks, np.int64),
        listed=np.zeros(keys.count, np.int64),
        level_counts=np.zeros(active + OCTAVE + 2, np.int64),
        weights=np.zeros(active + OCTAVE + 2, np.int64),
        counts=np.zeros((active + OCTAVE + 2, padded), np.int32),
        agreement=np.zeros(padded, np.int64),
        sums=zero_blocks(32),
        blocks=zero_blocks(blocks),
        other_blocks=zero_blocks(blocks),
        places=np.arange(blocks, dtype=np.int32),
    )


@compiled
def _walk(keys, states, row_numbers, rates, tables, seed, vocabulary_size, work):
    """Walks `states` (b, N) in place from the data at t = 1 to the source at t = 0."""
    others = np.uint64(vocabulary_size - 1)
    seed_low, seed_high = _split(seed)
    columns = keys.columns
    home = np.full(len(columns), -1)
    for query in range(len(states)):
        z = states[query]
        row_low, row_high = _split(row_numbers[query])
        for i in range(len(columns)):
            _move(keys, work.home, i, home[i], np.int64(z[columns[i]]), work)
            home[i] = z[columns[i]]
            work.state[i] = z[columns[i]]
            work.rows[i] = _row(keys, i, home[i])
        if len(keys.packed):
            _pack(work.state, len(columns), work.packed_state)
        work.planes[:] = work.home
        ceiling = len(columns)
        for step in range(len(rates), 0, -1):
            nearest, kept = _count_levels(keys, ceiling, tables[step - 1], work)
            ceiling = nearest
            denominator = _weigh(work, kept)
            rate = rates[step - 1]
            for i in range(len(columns)):
                column = columns[i]
                if work.agreement[i] == 0:
                    continue
                w0, w1, w2, _ = _philox(
                    np.uint64(column), np.uint64(step), row_low, row_high, seed_low, seed_high
                )
                if _uniform(w0, w1) < rate * (work.agreement[i] / denominator):
                    symbol = _choose(w2, others)
                    symbol += np.uint64(symbol >= z[column])
                    if step > 1:
                        _move(keys, work.planes, i, np.int64(z[column]), np.int64(symbol), work)
                        ceiling += 1
                        work.rows[i] = _row(keys, i, np.int64(symbol))
                    work.state[i] = symbol
                    z[column] = symbol
            if len(keys.packed):
                _pack(work.state, len(columns), work.packed_state)
            for column in range(len(z)):
                if keys.constants[column] >= 0 and keys.constants[column] == z[column]:
                    w0, w1, w2, _ = _philox(
                        np.uint64(column), np.uint64(step), row_low, row_high, seed_low, seed_high
                    )
                    if _uniform(w0, w1) < rate:
                        symbol = _choose(w2, others)
                        symbol += np.uint64(symbol >= z[column])
                        z[column] = symbol
            ceiling = min(ceiling, len(columns))


@compiled
def _row(keys, i, symbol):
    return find_row(keys.bitmaps, i, symbol) if symbol >= 0 else -1


@compiled
def _move(keys, planes, i, old, new, work):
    if old == new:
        return
    b = keys.bitmaps
    r, s = _row(keys, i, old), _row(keys, i, new)
    if b.stored:
        r0 = b.starts[r] if r >= 0 else 0
        r1 = b.starts[r + 1] if r >= 0 else 0
        s0 = b.starts[s] if s >= 0 else 0
        s1 = b.starts[s + 1] if s >= 0 else 0
        exchange(planes, b.blocks, b.places, r0, r1, b.blocks, b.places, s0, s1)
    else:
        n = len(work.places)
        if r >= 0:
            scan_blocks(b.columns[i], b.columns.dtype.type(old), 0, n, work.blocks)
        if s >= 0:
            scan_blocks(b.columns[i], b.columns.dtype.type(new), 0, n, work.other_blocks)
        exchange(
            planes,
            work.blocks,
            work.places,
            0,
            n if r >= 0 else 0,
            work.other_blocks,
            work.places,
            0,
            n if s >= 0 else 0,
        )


@compiled
def _pack(state, length, packed):
    packed[:] = 0
    for i in range(length):
        for bit in range(packed.shape[0]):
            packed[bit, i // 512, i % 512 // 64] |= np.uint64(state[i] >> bit & 1) << np.uint64(i & 63)


@compiled
def _count_levels(keys, ceiling, table, work):
    octave = ceiling // 8
    known = 0
    nearest = -1
    seen = 0
    row_blocks = 0
    for i in range(len(work.rows)):
        if work.rows[i] >= 0:
            row_blocks += keys.bitmaps.starts[work.rows[i] + 1] - keys.bitmaps.starts[work.rows[i]]
    chosen = np.empty((8, 2), np.int64)
    while True:
        touched = split_octave(
            work.planes, keys.bitmaps.valid, octave, work.masks, work.touched, work.octave_counts
        )
        first = known
        top = 7
        if nearest < 0:
            while top >= 0 and work.octave_counts[top] == 0:
                top -= 1
            if top >= 0:
                nearest = octave * 8 + top
        for k in range(top, -1, -1):
            work.level_counts[known] = work.octave_counts[k]
            seen += work.octave_counts[k]
            known += 1
        if known > 0:
            work.level_counts[known] = keys.count - seen
            kept = _level_weights(work.level_counts[: known + 1], table, work.weights)
            n_chosen = 0
            for g in range(first, min(kept, known)):
                k = top - (g - first)
                n = work.level_counts[g]
                work.counts[g] = 0
                if n == 0:
                    continue
                if n * _key_cost(keys) < row_blocks * 4:
                    listed = work.listed[: list_keys(work.masks[k], work.touched[:touched], work.listed)]
                    if len(keys.packed):
                        add_by_packed_keys(keys.packed, work.packed_state, listed, work.sums, work.counts[g])
                    else:
                        add_by_keys(keys.tokens, work.state, listed, work.counts[g])
                else:
                    chosen[n_chosen, 0] = k
                    chosen[n_chosen, 1] = g
                    n_chosen += 1
            if n_chosen:
                clear_untouched(work.masks, work.touched, touched)
                add_by_rows(
                    keys.bitmaps, work.rows, work.state, work.masks, chosen[:n_chosen], work.counts, work
                )
            if kept <= known:
                return nearest, kept
        octave -= 1


@compiled
def _key_cost(keys):
    if len(keys.packed):
        return 20
    return 10 + keys.tokens.shape[1] // 4


@compiled
def _weigh(work, kept):
    total = 0
    work.agreement[:] = 0
    for g in range(kept):
        if work.level_counts[g] > 0:
            total += work.level_counts[g] * work.weights[g]
            _add_weighted(work.counts[g], work.weights[g], work.agreement)
    return total


@compiled
def _add_weighted(counts, weight, agreement):
    for i in range(len(counts)):
        agreement[i] += weight * counts[i]
