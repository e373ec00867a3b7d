"""Draws data rows for sources by the law of `pairing.posterior`, bit for bit as the oracle does.

Keys are sorted by bucket, and each bucket starts a new block (`planes`). So the keys of a cell are counted as
bits of a few blocks. The keys that pad a bucket's last block are not rows.
"""

from typing import NamedTuple

import numpy as np

from pairflow.pairing import posterior
from pairflow.pairing.cpu.block import BITS, WORDS, bit_count, fill, load, lowest_bit, popcount, store, total
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.keys import Keys, prepare
from pairflow.pairing.cpu.matches import (
    Scratch,
    State,
    apply_moves,
    greatest_possible,
    move,
    open_level,
    scratch_for,
    state_for,
)
from pairflow.pairing.cpu.numbers import philox, split, uniform
from pairflow.pairing.cpu.planes import OCTAVE, clear_untouched
from pairflow.runtime.threads import available_cpus, run_blocks

_BLOCK = 1 << 31  # comparisons of tokens per task, a fraction of a second
_add_level = compiled(posterior.add_level)
_is_enough = compiled(posterior.is_enough)
_weigh = compiled(posterior.weigh)


class Buckets(NamedTuple):
    """Bucket b has the blocks first_blocks[b]..first_blocks[b + 1] - 1 of 512 keys each.

    `rows` (M',) are the rows of the keys; a padding key has the row -1.
    """

    rows: np.ndarray
    of_block: np.ndarray  # the bucket of each block
    first_blocks: np.ndarray
    number: int  # M


class Law(NamedTuple):
    """The arrays near[g] and high[b] of the law (point 2)."""

    near: np.ndarray
    high: np.ndarray


class LawWorkspace(NamedTuple):
    """The memory that one thread writes to."""

    state: State
    scratch: Scratch
    counts: np.ndarray  # (L, B): n[g, b]
    weights: np.ndarray  # (L, B): W[g, b]


class Posterior:
    """Draws rows of `tokens` (M, N) by P(m | z); `buckets` (M,), from 0 on, have their potentials."""

    def __init__(self, tokens: np.ndarray, buckets: np.ndarray, vocabulary_size: int, tau: float):
        data = tokens.astype(np.min_scalar_type(vocabulary_size - 1), copy=False)
        order, self.buckets = _in_blocks(data, buckets)
        keys = prepare(data, vocabulary_size, np.where(order >= 0, order, ~order))
        if not keys.listed:
            real = np.packbits(order >= 0, bitorder="little").view(np.uint64)
            keys.bitmaps.valid.reshape(-1)[:] = real
        self.keys: Keys = keys
        self.law = Law(
            posterior.nearness(tau, data.shape[1]), posterior.heights(len(self.buckets.first_blocks) - 1)
        )
        self._idle: list[LawWorkspace] = []  # of threads that have ended

    def draw(
        self,
        sources: np.ndarray,
        numbers: np.ndarray,
        seed: int,
        draws: int = 1,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows (S, draws) int32 for `sources` (S, N); their `numbers` (S,) select the random numbers.

        Also returns the entropies (S,) of P(m | z) in nats. Nothing depends on the number of threads.
        """
        sources = np.ascontiguousarray(sources.astype(self.keys.tokens.dtype, copy=False))
        numbers = np.asarray(numbers, np.uint64)
        rows = np.empty((len(sources), draws), np.int32)
        entropies = np.empty(len(sources))

        def block(part: slice) -> None:
            work = self._idle.pop() if self._idle else self._workspace()
            parts = sources[part], numbers[part]
            cells = np.zeros((draws, 3), np.int64)
            _draw(
                self.keys,
                self.buckets,
                self.law,
                *parts,
                np.uint64(seed),
                work,
                cells,
                rows[part],
                entropies[part],
            )
            self._idle.append(work)

        threads = threads or available_cpus()
        size = max(1, min(_BLOCK // self.keys.tokens.size, -(-len(sources) // threads)))
        if size >= len(sources):
            block(slice(0, len(sources)))
        else:
            run_blocks(block, len(sources), size, threads=threads, progress=False, name="transport")
        return rows, entropies

    def _workspace(self) -> LawWorkspace:
        cells = len(self.law.near), len(self.law.high)
        counts, weights = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        return LawWorkspace(state_for(self.keys), scratch_for(self.keys), counts, weights)


def _in_blocks(data: np.ndarray, buckets: np.ndarray) -> tuple[np.ndarray, Buckets]:
    """Return keys as row numbers of `data`, where ~r is a copy of row r that pads a block, and `Buckets`."""
    order = posterior.sorted_by_bucket(data, buckets)
    sizes = np.bincount(buckets)
    blocks = -(-sizes // BITS)
    first_blocks = np.cumsum([0, *blocks])
    keys = np.empty(int(blocks.sum()) * BITS, np.int64)
    ends = np.cumsum(sizes)
    for end, size, first, last in zip(ends, sizes, first_blocks, first_blocks[1:], strict=False):
        if size:
            keys[first * BITS : last * BITS] = ~order[end - 1]
            keys[first * BITS : first * BITS + size] = order[end - size : end]
    rows = np.where(keys >= 0, keys, -1).astype(np.int32)
    return keys, Buckets(rows, np.repeat(np.arange(len(sizes)), blocks), first_blocks, len(data))


@compiled
def _draw(keys, buckets, law, sources, numbers, seed, work, cells, rows, entropies):
    """Draws rows (b, D) for `sources` (b, N); `cells` (D, 3) are level, bucket and number of each draw."""
    seed_words = split(seed)
    for number in range(len(sources)):
        _start(keys, sources[number], work)
        nearest, levels, mass = _count_cells(keys, buckets, law, work)
        entropies[number] = _draw_cells(
            law, work.counts, levels, mass, work.weights, seed_words, numbers[number], cells
        )
        for level in range(levels):
            _find_rows(keys, buckets, nearest - level, level, work, cells, rows[number])


@compiled
def _draw_cells(law, counts, levels, mass, weights, seed_words, number, cells):
    """Points 4 and 5 of the law for the source `number`; fills `cells`, and returns the entropy."""
    whole = _weigh(counts, levels, law.near, law.high, mass, weights)
    row_words = split(number)
    for n in range(len(cells)):
        w0, w1, _, _ = philox(np.uint64(n), np.uint64(posterior.STEP), *row_words, *seed_words)
        _find_cell(counts, weights, cells[n], min(np.int64(uniform(w0, w1) * whole), whole - 1))
    return _entropy(counts, weights, levels, whole)


@compiled
def cells_of_counts(law, counts, rows, seed, numbers, weights, cells, entropies):
    """Fills `cells` (S, D, 3) and `entropies` (S,) from the numbers of rows in all cells, `counts` (S, L, B).

    `rows` is M and `weights` (L, B) is scratch. L must be at least the number of levels that point 3 uses.
    """
    seed_words = split(seed)
    for s in range(len(counts)):
        left, mass, level = rows, 0.0, 0
        while True:
            for bucket in range(counts.shape[2]):
                left -= counts[s, level, bucket]
            mass += _add_level(counts[s, level], law.near[level], law.high)
            level += 1
            if left == 0 or _is_enough(left, law.near[level], mass):
                break
        entropies[s] = _draw_cells(law, counts[s], level, mass, weights, seed_words, numbers[s], cells[s])


@compiled
def _start(keys, z, work):
    """Moves the state to a source. Bitmaps start from zero, because two sources have little in common."""
    state = work.state
    if not keys.listed and not keys.binary:
        nothing = fill(np.uint64(0))
        for plane in range(state.planes.shape[0] * state.planes.shape[1]):
            store(state.planes, plane, nothing)
        for i in range(len(keys.columns)):
            state.rows[i] = keys.rows.none
    for i in range(len(keys.columns)):
        symbol = z[keys.columns[i]]
        if symbol != state.symbols[i] or state.rows[i] == keys.rows.none:
            move(keys, state, i, symbol, work.scratch)
    apply_moves(keys, state, work.scratch)


@compiled
def _count_cells(keys, buckets, law, work):
    """Counts the cells level by level; returns the nearest match count, how many levels, and their mass."""
    state, scratch, counts = work.state, work.scratch, work.counts
    nearest = greatest_possible(keys, state, len(keys.columns))
    number = open_level(keys, state, nearest, scratch)
    while number == 0:
        nearest -= 1
        number = open_level(keys, state, nearest, scratch)
    if keys.listed:
        _count_all_levels(keys, buckets, nearest, state.counters, counts)
    left, mass, level = buckets.number, 0.0, 0
    while True:
        if not keys.listed:
            _count_level(buckets, nearest - level, number, scratch, counts[level])
        for bucket in range(counts.shape[1]):
            left -= counts[level, bucket]
        mass += _add_level(counts[level], law.near[level], law.high)
        level += 1
        if left == 0 or _is_enough(left, law.near[level], mass):
            return nearest, level, mass
        if not keys.listed:
            number = open_level(keys, state, nearest - level, scratch)


@compiled
def _count_all_levels(keys, buckets, nearest, counters, counts):
    """Counts the keys of each level and bucket, by their counters."""
    for level in range(len(counts)):
        for bucket in range(counts.shape[1]):
            counts[level, bucket] = 0
    for key in range(keys.number):
        if buckets.rows[key] >= 0:
            counts[nearest - np.int64(counters[key]), buckets.of_block[key // BITS]] += 1


@compiled
def _count_level(buckets, matches, number, scratch, counts):
    """Counts the `number` keys of a match count bucket by bucket, in the blocks with such a key."""
    for bucket in range(len(counts)):
        counts[bucket] = 0
    if number > 0:
        first = (matches % OCTAVE) * len(buckets.of_block)
        for block in scratch.touched[: scratch.written[0]]:
            counts[buckets.of_block[block]] += total(popcount(load(scratch.masks, first + block)))


@compiled
def _entropy(counts, weights, levels, whole):
    """Returns the entropy in nats of the drawn row, given the source."""
    entropy = 0.0
    for level in range(levels):
        for bucket in range(counts.shape[1]):
            weight = weights[level, bucket]
            if weight > 0 and counts[level, bucket] > 0:
                share = weight / whole
                entropy -= counts[level, bucket] * share * np.log(share)
    return entropy


@compiled
def _find_cell(counts, weights, chosen, pick):
    """Point 5 of the law: writes level, bucket and number within the cell for `pick` to `chosen`."""
    for level in range(len(counts)):
        for bucket in range(counts.shape[1]):
            weight = weights[level, bucket]
            cell = counts[level, bucket] * weight
            if pick < cell:
                chosen[0], chosen[1], chosen[2] = level, bucket, pick // weight
                return
            pick -= cell


@compiled
def _find_rows(keys, buckets, matches, level, work, cells, rows):
    """Writes the rows of those draws whose cell is in `level` to `rows` (D,)."""
    is_open = False
    for n in range(len(cells)):
        if cells[n, 0] == level:
            if not is_open:
                open_level(keys, work.state, matches, work.scratch)
                if not keys.listed:
                    mask = work.scratch.masks[matches % OCTAVE]
                    clear_untouched(mask, work.scratch.touched, work.scratch.written[0])
                is_open = True
            bucket, number = cells[n, 1], cells[n, 2]
            first, end = buckets.first_blocks[bucket], buckets.first_blocks[bucket + 1]
            if keys.listed:
                key = _find_counter(work.state.counters, buckets.rows, matches, first * BITS, number)
            else:
                key = _find_bit(work.scratch.masks[matches % OCTAVE], first, end, number)
            rows[n] = buckets.rows[key]


@compiled
def _find_counter(counters, rows, matches, first, number):
    """Returns the `number`-th key (from 0) with `matches` matches, from key `first` on."""
    key = first
    while True:
        if counters[key] == matches and rows[key] >= 0:
            if number == 0:
                return key
            number -= 1
        key += 1


@compiled
def _find_bit(mask, first, end, number):
    """Returns the `number`-th key (from 0) in a mask, from block `first` on."""
    for block in range(first, end):
        count = total(popcount(load(mask, block)))
        if number >= count:
            number -= count
            continue
        for word in range(WORDS):
            bits = mask[block, word]
            count = bit_count(bits)
            if number >= count:
                number -= count
                continue
            while number > 0:
                bits &= bits - np.uint64(1)
                number -= 1
            return block * BITS + word * 64 + lowest_bit(bits)
    return -1
