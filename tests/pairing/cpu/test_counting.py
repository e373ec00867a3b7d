"""The parts of the CPU engine, each against its definition in NumPy."""

import numpy as np
import pytest
from numba import njit

from pairflow import rng
from pairflow.pairing.cpu import bitmaps, block, keys, matches, planes
from pairflow.pairing.cpu import index as row_index
from pairflow.pairing.cpu import lists as key_lists
from pairflow.pairing.cpu.numbers import uniform_tokens

KEYS, LENGTH, SYMBOLS = 70_000, 12, 5  # more than two tiles of blocks, the last block not full


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).integers(0, SYMBOLS, (KEYS, LENGTH), dtype=np.uint8)


@pytest.fixture(scope="module")
def rows(data):
    return row_index.build(np.ascontiguousarray(data.T), SYMBOLS + 1)


@pytest.fixture(scope="module")
def bits(data, rows):
    return bitmaps_of(np.ascontiguousarray(data.T), rows)


@pytest.fixture(scope="module")
def lists(data):
    return key_lists.build(np.ascontiguousarray(data.T), SYMBOLS + 1)


def bitmaps_of(columns, rows):
    starts = bitmaps.row_starts(columns, rows, SYMBOLS + 1)
    return bitmaps.build(columns, rows, starts, SYMBOLS + 1)


def members(blocks):
    """The numbers of the set bits."""
    return np.flatnonzero(np.unpackbits(blocks.reshape(-1).view(np.uint8), bitorder="little"))


def mask_of(places, chosen):
    """A bitmap (blocks, 8) with the bits of the chosen keys."""
    bits = np.isin(np.arange(places * block.BITS), chosen)
    mask = block.zero_blocks(places)
    mask.reshape(-1)[:] = np.packbits(bits, bitorder="little").view(np.uint64)
    return mask


def test_blocks_compute_like_words():
    @njit
    def compute(a, b, result):
        x, y = block.load(a, 1), block.load(b, 0)
        block.store(result, 0, (x & ~y) | (x ^ block.fill(np.uint64(3))))
        block.store(result, 1, block.plus(block.popcount(x), y))
        return block.total(block.popcount(x)), block.any_bit(x), block.any_bit(x ^ x)

    words = np.random.default_rng(0).integers(0, 2**63, (3, 8), dtype=np.uint64)
    a, b, result = block.zero_blocks(2), block.zero_blocks(1), block.zero_blocks(2)
    a[1], b[0] = words[:2]
    counted = compute(a, b, result)
    assert np.array_equal(result[0], (words[0] & ~words[1]) | (words[0] ^ np.uint64(3)))
    assert np.array_equal(result[1], np.bitwise_count(words[0]) + words[1])
    assert counted == (np.bitwise_count(words[0]).sum(), True, False)
    assert a.ctypes.data % 64 == 0


def test_random_words_eight_at_a_time_are_those_of_numpy():
    @njit
    def draw(positions, words):
        low, high = block.fill(np.uint64(7)), block.fill(np.uint64(2**31))
        w0, w1, _, _ = philox(
            block.load(positions, 0), block.fill(np.uint64(5)), low, high, np.uint64(1), np.uint64(2**32 - 1)
        )
        block.store(words, 0, w0 | (w1 << np.uint64(32)))

    philox = njit(rng.philox4x32)
    positions, words = np.arange(8, dtype=np.uint64), np.zeros(8, np.uint64)
    draw(positions, words)
    number = [np.uint64(value) for value in (5, 7, 2**31, 1, 2**32 - 1)]
    w0, w1, _, _ = rng.philox4x32(positions, *number)
    assert np.array_equal(words, w0 | (w1 << np.uint64(32)))


@pytest.mark.parametrize(("length", "size"), [(1, 2), (13, 300), (784, 2), (5, 65_536)])
def test_compiled_noise_is_that_of_numpy(length, size):
    numbers = np.arange(2**33 - 5, 2**33 + 5)
    tokens = uniform_tokens(11, numbers, length, size)
    expected = rng.uniform_tokens(11, numbers, length, size)
    assert tokens.dtype == expected.dtype
    assert np.array_equal(tokens, expected)


def test_the_index_has_every_key_in_the_row_of_its_symbol(data, rows, bits, lists):
    for column, symbol in ((0, 0), (LENGTH - 1, 3)):
        row = row_index.find_row(rows, column, symbol)
        expected = np.flatnonzero(data[:, column] == symbol)
        whole = block.zero_blocks(len(bits.valid))
        own = slice(bits.starts[row], bits.starts[row + 1])
        whole[bits.numbers[own]] = bits.blocks[own]
        assert np.array_equal(members(whole), expected)
        assert np.array_equal(lists.keys[lists.starts[row] : lists.starts[row + 1]], expected)
    assert row_index.find_row(rows, 0, SYMBOLS) == rows.none
    assert bits.starts[rows.none] == bits.starts[rows.none + 1] == len(bits.blocks)
    assert lists.starts[rows.none] == lists.starts[rows.none + 1] == data.size
    assert np.array_equal(members(bits.valid), np.arange(KEYS))


def test_bitmaps_have_no_empty_block():
    column = np.repeat(np.arange(4, dtype=np.uint8), 1024)[None]  # each symbol fills two blocks of its own
    bits = bitmaps_of(column, row_index.build(column, 5))
    assert bits.starts.tolist() == [0, 2, 4, 6, 8, 8]
    assert bits.numbers.tolist() == list(range(8))
    assert (bits.blocks == 0xFFFFFFFFFFFFFFFF).all()


def test_match_counts_follow_the_query(data, rows, bits, lists):
    """Whatever octave the counts lie in, the keys with a match count are found, in either layout."""
    state = data[5].copy()
    bit_planes = block.zero_blocks(len(bits.valid), planes.planes_for(LENGTH))
    counters = key_lists.counters_for(KEYS)
    chosen = np.array([row_index.find_row(rows, column, state[column]) for column in range(LENGTH)])
    key_lists.restart(lists, counters, KEYS, chosen)
    for row in chosen:
        planes.move(bit_planes, bits, rows.none, row)
    other = row_index.find_row(rows, 3, (state[3] + 1) % SYMBOLS)
    planes.move(bit_planes, bits, chosen[3], other)
    key_lists.move(lists, counters, chosen[3:4], np.array([other]))
    state[3] = (state[3] + 1) % SYMBOLS
    matches = (data == state).sum(axis=1)
    assert np.array_equal(counters[:KEYS], matches)
    assert key_lists.greatest(counters, KEYS) == matches.max()
    masks, sizes = block.zero_blocks(8, len(bits.valid)), np.zeros(8, np.int64)
    touched, listed = np.zeros(len(bits.valid), np.int64), np.zeros(KEYS, np.int32)
    for octave in (0, 1):
        masks[:] = 1  # whatever an earlier octave left
        written = planes.split_octave(bit_planes, bits.valid, octave, masks, touched, sizes)
        for k in range(8):
            expected = np.flatnonzero(matches == 8 * octave + k)
            planes.list_keys(masks[k], touched[:written], listed)
            assert np.array_equal(listed[: len(expected)], expected)
            planes.clear_untouched(masks[k], touched, written)
            assert np.array_equal(members(masks[k]), expected)
            assert sizes[k] == key_lists.level_size(counters, 8 * octave + k) == len(expected)
            key_lists.list_level(counters, 8 * octave + k, listed)
            assert np.array_equal(listed[: len(expected)], expected)


@pytest.mark.parametrize("moves", [1, 7, 12])
def test_many_moves_at_once_count_like_one_after_the_other(moves):
    data = np.random.default_rng(moves).integers(0, 2, (1500, 20), dtype=np.uint8)
    data[:600, 4] = 0  # the first block of the row of ones is not stored
    columns = np.ascontiguousarray(data.T)
    rows = row_index.build(columns, 2)
    bits = bitmaps_of(columns, rows)
    one_by_one = block.zero_blocks(len(bits.valid), planes.planes_for(20))
    zeros, ones = ([row_index.find_row(rows, column, symbol) for column in range(20)] for symbol in (0, 1))
    for column in range(20):
        planes.move(one_by_one, bits, rows.none, zeros[column])
    together = one_by_one.copy()
    for column in range(moves):
        planes.move(one_by_one, bits, zeros[column], ones[column])
    all_stored = bitmaps.build(columns, rows, bitmaps.row_starts(columns, rows, 2), 2)
    planes.move_binary(together, all_stored, np.array(ones[:moves]))
    real = bits.valid[:, None]  # what is counted beyond the last key does not matter
    assert np.array_equal(together & real, one_by_one & real)


@pytest.mark.parametrize("size", [1, 20, 9000])
def test_every_way_to_count_agreement_agrees(data, rows, bits, lists, size):
    level = np.sort(np.random.default_rng(size).choice(KEYS, size, replace=False))
    state, columns = data[0], np.array([11, 4, 8])
    expected = [np.count_nonzero(data[level, column] == state[column]) for column in columns]
    own_rows = [row_index.find_row(rows, column, state[column]) for column in columns]
    mask = mask_of(len(bits.valid), level)
    assert [bitmaps.count_in_row(bits, row, mask) for row in own_rows] == expected
    counters = key_lists.counters_for(KEYS)
    counters[level] = 9
    assert [key_lists.count_in_row(lists, row, counters, 9) for row in own_rows] == expected
    tally = np.zeros(3, np.int64)
    matches.count_by_keys(data, level.astype(np.int32), state, columns, tally)
    assert tally.tolist() == expected


def test_constant_columns_are_left_out():
    data = np.array([[3, 1, 0], [3, 0, 0], [3, 2, 0]], dtype=np.uint8)
    prepared = keys.prepare(data, 4)
    assert prepared.columns.tolist() == [1]
    assert prepared.constants.tolist() == [3, -1, 0]
    alike = keys.prepare(data[:1], 4)
    assert alike.columns.tolist() == [0]  # one column stays, to count in


def test_common_symbols_take_bitmaps_and_rare_ones_lists(data):
    assert not keys.prepare(data, SYMBOLS).listed
    rare = np.random.default_rng(1).integers(0, 5000, (2000, 8), dtype=np.uint16)
    assert keys.prepare(rare, 5000).listed
