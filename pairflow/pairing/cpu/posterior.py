"""Draws data rows for sources by the law of `pairing.posterior`, bit for bit as the oracle does.

Keys are sorted by bucket, so most blocks of 512 keys (`planes`) have keys of one bucket only, and the keys of
a cell are counted block by block. A block with several buckets is counted word by word (64 keys), and a word
with several buckets key by key.
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
from pairflow.runtime.threads import run_blocks, useful_threads

_BLOCK = 1 << 31  # comparisons of tokens per task, a fraction of a second
# The oracle calls the same three functions, so that both round in the same way.
_add_level = compiled(posterior.add_level)
_is_enough = compiled(posterior.is_enough)
_weigh = compiled(posterior.weigh)


class Buckets(NamedTuple):
    """The keys (data rows), sorted into buckets of equal potential.

    Bucket b has the keys starts[b]..starts[b + 1] - 1.
    """

    rows: np.ndarray  # (M,): the row of each key
    starts: np.ndarray
    of_key: np.ndarray  # the bucket of each key, up to the end of the last block
    of_word: np.ndarray  # the bucket of all keys of a word, or -1 if they are in several
    of_block: np.ndarray  # likewise of a block


class Law(NamedTuple):
    """The tables near[g] and high[b] of `pairing.posterior` (point 2), which make the weights of rows."""

    near: np.ndarray
    high: np.ndarray


class LawWorkspace(NamedTuple):
    """The memory that one thread of `Posterior.draw` writes to; g is a level (distance), b a bucket."""

    state: State
    scratch: Scratch
    counts: np.ndarray  # (L, B): n[g, b]
    weights: np.ndarray  # (L, B): W[g, b]
    totals: np.ndarray  # (L,): n[g, b] W[g, b], summed over the buckets


class Posterior:
    """Draws data rows d_m for sources z from P(m | z), proportional to exp((g_m - h(z, d_m)) / tau).

    `tokens` (M, N) are the data rows, h is the Hamming distance, and `tau` the temperature. `buckets` (M,)
    are the numbers of units tau / 4 by which the rows' potentials g_m are below the greatest.
    """

    def __init__(self, tokens: np.ndarray, buckets: np.ndarray, vocabulary_size: int, tau: float):
        data = tokens.astype(np.min_scalar_type(vocabulary_size - 1), copy=False)
        order = posterior.sorted_by_bucket(data, buckets)
        self.buckets = _buckets(order, buckets)
        self.keys: Keys = prepare(data, vocabulary_size, order)
        self.law = Law(
            posterior.nearness(tau, data.shape[1]), posterior.heights(len(self.buckets.starts) - 1)
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
        """Draw `draws` data rows for each of `sources` (S, N).

        Returns the numbers (S, draws) int32 of the rows, and the entropies (S,) of P(m | z) in nats.
        `numbers` (S,) are the numbers of the sources, which select their random numbers. Nothing depends on
        the number of threads.
        """
        sources = np.ascontiguousarray(sources.astype(self.keys.tokens.dtype, copy=False))
        numbers = np.asarray(numbers, np.uint64)
        rows = np.empty((len(sources), draws), np.int32)
        entropies = np.empty(len(sources))

        def block(part: slice) -> None:
            work = self._idle.pop() if self._idle else self._workspace()
            given = sources[part], numbers[part], np.uint64(seed)
            made = np.zeros((draws, 3), np.int64), rows[part], entropies[part]
            _draw(self.keys, self.buckets, self.law, *given, work, *made)
            self._idle.append(work)

        threads = useful_threads(threads)
        size = max(1, min(_BLOCK // self.keys.tokens.size, -(-len(sources) // threads)))
        if size >= len(sources):
            block(slice(0, len(sources)))
        else:
            run_blocks(block, len(sources), size, threads=threads, progress=False, name="transport")
        return rows, entropies

    def _workspace(self) -> LawWorkspace:
        cells = len(self.law.near), len(self.law.high)
        counts, weights = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        totals = np.zeros(len(counts), np.int64)
        return LawWorkspace(state_for(self.keys), scratch_for(self.keys), counts, weights, totals)


def _buckets(order: np.ndarray, buckets: np.ndarray) -> Buckets:
    """Return `Buckets` for keys in this `order` of the rows; `buckets` (M,) has the bucket of each row."""
    # The padding repeats the last bucket: with another one the last block would count as mixed.
    of_key = np.pad(buckets[order], (0, -len(order) % BITS), mode="edge").astype(np.int32)

    def common(keys: int) -> np.ndarray:
        first, last = of_key[::keys], of_key[keys - 1 :: keys]
        # Keys are sorted by bucket: if the first and the last key agree, all keys between them do, too.
        return np.where(first == last, first, -1)

    starts = np.cumsum([0, *np.bincount(buckets)])
    return Buckets(order.astype(np.int32), starts, of_key, common(BITS // WORDS), common(BITS))


@compiled
def _draw(keys, buckets, law, sources, numbers, seed, work, cells, rows, entropies):
    """Draw D data rows for each of `sources` (b, N): write their numbers to `rows` (b, D).

    Fills `entropies` (b,), too. `numbers` (b,) select the random numbers. `cells` (D, 3) is scratch memory
    for the level and the bucket of each draw, and for its number in this cell.
    """
    seed_words = split(seed)
    for number in range(len(sources)):
        _start(keys, sources[number], work)
        nearest, levels, mass = _count_cells(keys, buckets, law, work)
        entropies[number] = _draw_cells(
            law, work.counts, levels, mass, work.weights, work.totals, seed_words, numbers[number], cells
        )
        for level in range(levels):
            _find_rows(keys, buckets, nearest - level, level, work, cells, rows[number])


@compiled
def _draw_cells(law, counts, levels, mass, weights, totals, seed_words, number, cells):
    """Fill `cells` (D, 3) with the level, the bucket and the number in this cell of each of D draws.

    This is points 4 and 5 of `pairing.posterior`, for the source with the number `number`: `counts` (L, B)
    has the rows in each cell, of which the first `levels` levels count, and `mass` is the sum of their
    weights as floats. `weights` (L, B) and `totals` (L,) are scratch memory. Returns the entropy of the drawn
    row, in nats.
    """
    whole = _weigh(counts, levels, law.near, law.high, mass, weights)
    for level in range(levels):
        totals[level] = 0
        for bucket in range(counts.shape[1]):
            totals[level] += counts[level, bucket] * weights[level, bucket]
    row_words = split(number)
    for n in range(len(cells)):
        w0, w1, _, _ = philox(np.uint64(n), np.uint64(posterior.STEP), *row_words, *seed_words)
        pick = min(np.int64(uniform(w0, w1) * whole), whole - 1)
        # To skip whole levels first leads to the same cell as point 5, in fewer steps.
        level = 0
        while pick >= totals[level]:
            pick -= totals[level]
            level += 1
        cells[n, 0] = level
        cells[n, 1], cells[n, 2] = _find_in_level(counts[level], weights[level], pick)
    return _entropy(counts, weights, levels, whole)


@compiled
def cells_of_counts(law, counts, rows, seed, numbers, weights, totals, cells, entropies):
    """Draw cells (a level and a bucket), and a row in each, for sources whose `counts` are known.

    Points 3 to 5 of `pairing.posterior` define how. Fills `cells` (S, D, 3) and `entropies` (S,) from
    `counts` (S, L, B), the numbers of rows in all cells. `rows` is M; `weights` (L, B) and `totals` (L,) are
    scratch memory. L must be at least the number of levels that point 3 uses.
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
        entropies[s] = _draw_cells(
            law, counts[s], level, mass, weights, totals, seed_words, numbers[s], cells[s]
        )


@compiled
def _start(keys, z, work):
    """Give the query in `work.state` the symbols of the source z (N,), and count its matches.

    Bitmaps start from zero, because two sources have little in common.
    """
    state = work.state
    if not keys.listed and not keys.binary:
        nothing = fill(np.uint64(0))
        for plane in range(state.planes.shape[0] * state.planes.shape[1]):
            store(state.planes, plane, nothing)
        for i in range(len(keys.columns)):
            state.rows[i] = keys.rows.none
    for i in range(len(keys.columns)):
        symbol = z[keys.columns[i]]
        # After the reset a symbol may be the same as before, but its keys must be counted again.
        if symbol != state.symbols[i] or state.rows[i] == keys.rows.none:
            move(keys, state, i, symbol, work.scratch)
    apply_moves(keys, state, work.scratch)


@compiled
def _count_cells(keys, buckets, law, work):
    """Fill `work.counts` with the rows in each cell, level by level, until farther ones are negligible.

    Returns the match count of the nearest keys, the number of levels, and the sum of the rows' weights as
    floats (point 3 of `pairing.posterior`).
    """
    state, scratch, counts = work.state, work.scratch, work.counts
    nearest = greatest_possible(keys, state, len(keys.columns))
    number = open_level(keys, state, nearest, scratch)
    while number == 0:
        nearest -= 1
        number = open_level(keys, state, nearest, scratch)
    if keys.listed:
        _count_all_levels(keys, buckets, nearest, state.counters, counts)
    left, mass, level = keys.number, 0.0, 0
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
    """Fill `counts` (L, B) with the number of keys at each level and in each bucket.

    `counters` has the match count of each key. `nearest` is the greatest match count, that of level 0.
    """
    for level in range(len(counts)):
        for bucket in range(counts.shape[1]):
            counts[level, bucket] = 0
    for key in range(keys.number):
        counts[nearest - np.int64(counters[key]), buckets.of_key[key]] += 1


@compiled
def _count_level(buckets, matches, number, scratch, counts):
    """Fill `counts` (B,) with the number of keys with `matches` matches in each bucket.

    `open_level` has just found these keys, and their number, `number`.
    """
    for bucket in range(len(counts)):
        counts[bucket] = 0
    if number > 0:
        mask = scratch.masks[matches % OCTAVE]
        for block in scratch.touched[: scratch.written[0]]:
            if buckets.of_block[block] >= 0:
                counts[buckets.of_block[block]] += total(popcount(load(mask, block)))
            else:
                for word in range(block * WORDS, (block + 1) * WORDS):
                    _count_word(buckets, word, mask[block, word % WORDS], counts)


@compiled
def _count_word(buckets, word, bits, counts):
    """Add the keys of one word, the set bits of `bits`, to `counts` (B,), bucket by bucket.

    `word` is the number of the word: it has the keys 64 word..64 word + 63.
    """
    if buckets.of_word[word] >= 0:
        counts[buckets.of_word[word]] += bit_count(bits)
        return
    while bits != 0:
        counts[buckets.of_key[word * 64 + lowest_bit(bits)]] += 1
        bits &= bits - np.uint64(1)


@compiled
def _entropy(counts, weights, levels, whole):
    """Return the entropy in nats of the drawn row, given the source.

    `counts` and `weights` (L, B) belong to the cells, of which the first `levels` levels count; `whole` is
    the sum of the weights of all rows.
    """
    # The GPU engine runs this loop, too, so that both add in the same order.
    entropy = 0.0
    for level in range(levels):
        for bucket in range(counts.shape[1]):
            weight = weights[level, bucket]
            if weight > 0 and counts[level, bucket] > 0:
                share = weight / whole
                entropy -= counts[level, bucket] * share * np.log(share)
    return entropy


@compiled
def _find_in_level(counts, weights, pick):
    """Return the bucket of the cell that `pick` leads to, and the row's number in this cell.

    This is point 5 of `pairing.posterior`, in one level: `counts` (B,) has the rows in each bucket, `weights`
    (B,) the weight of one. `pick` is less than the level's total weight.
    """
    bucket = 0
    while pick >= counts[bucket] * weights[bucket]:
        pick -= counts[bucket] * weights[bucket]
        bucket += 1
    return bucket, pick // weights[bucket]


@compiled
def _find_rows(keys, buckets, matches, level, work, cells, rows):
    """Write to `rows` (D,) the number of the data row of each draw whose cell is in `level`.

    `cells` (D, 3) says of each draw the level and the bucket of its cell, and which row of the cell it is,
    from 0. The keys of the level have `matches` matches. `work` is overwritten.
    """
    is_open = False
    for n in range(len(cells)):
        if cells[n, 0] == level:
            if not is_open:
                open_level(keys, work.state, matches, work.scratch)
                if not keys.listed:
                    # Other blocks may have bits of an earlier octave, which `_find_bit` would count.
                    mask = work.scratch.masks[matches % OCTAVE]
                    clear_untouched(mask, work.scratch.touched, work.scratch.written[0])
                is_open = True
            first, number = buckets.starts[cells[n, 1]], cells[n, 2]
            if keys.listed:
                key = _find_counter(work.state.counters, matches, first, number)
            else:
                key = _find_bit(work.scratch.masks[matches % OCTAVE], first, number)
            rows[n] = buckets.rows[key]


@compiled
def _find_counter(counters, matches, key, number):
    """Return the `number`-th (from 0) of the keys with `matches` matches, counted from the key `key` on."""
    while counters[key] != matches or number > 0:
        number -= counters[key] == matches
        key += 1
    return key


@compiled
def _find_bit(mask, first, number):
    """Return the `number`-th (from 0) of the keys in `mask` (blocks, 8), counted from the key `first` on."""
    block, word = first // BITS, first % BITS // 64
    bits = mask[block, word] >> np.uint64(first % 64) << np.uint64(first % 64)
    while number >= bit_count(bits):
        number -= bit_count(bits)
        word += 1
        if word == WORDS:
            word, block = 0, block + 1
            while number >= total(popcount(load(mask, block))):
                number -= total(popcount(load(mask, block)))
                block += 1
        bits = mask[block, word]
    while number > 0:
        bits &= bits - np.uint64(1)
        number -= 1
    return block * BITS + word * 64 + lowest_bit(bits)
