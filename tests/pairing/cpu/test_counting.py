"""The parts of the CPU engine, each against its definition in NumPy."""

import numpy as np
import pytest
from numba import njit

from pairflow.pairing.cpu import agreement, bitmaps, block, counters, keys

KEYS, LENGTH, SYMBOLS = 70_000, 12, 5  # more than two tiles of blocks, the last block not full


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).integers(0, SYMBOLS, (KEYS, LENGTH), dtype=np.uint8)


@pytest.fixture(scope="module")
def index(data):
    return bitmaps.build(np.ascontiguousarray(data.T), SYMBOLS + 1)


def members(blocks):
    """The numbers of the set bits."""
    return np.flatnonzero(np.unpackbits(blocks.reshape(-1).view(np.uint8), bitorder="little"))


def mask_of(places, chosen):
    """A bitmap (blocks, 8) with the bits of the chosen keys."""
    bits = np.isin(np.arange(places * block.BITS), chosen)
    mask = block.zero_blocks(places)
    mask.reshape(-1)[:] = np.packbits(bits, bitorder="little").view(np.uint64)
    return mask


def row_of(index, column, symbol):
    row = bitmaps.find_row(index, column, symbol)
    return bitmaps.IndexRow(index.blocks, index.places, index.starts[row], index.starts[row + 1])


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


def test_the_index_has_every_key_in_the_row_of_its_symbol(data, index):
    assert index.stored
    for column, symbol in ((0, 0), (LENGTH - 1, 3)):
        row = row_of(index, column, symbol)
        whole = block.zero_blocks(len(index.valid))
        whole[index.places[row.first : row.end]] = index.blocks[row.first : row.end]
        assert np.array_equal(members(whole), np.flatnonzero(data[:, column] == symbol))
    assert bitmaps.find_row(index, 0, SYMBOLS) == -1
    assert np.array_equal(members(index.valid), np.arange(KEYS))


def test_the_index_stores_no_empty_block():
    column = np.repeat(np.arange(4, dtype=np.uint8), 1024)[None]  # each symbol fills two blocks of its own
    index = bitmaps.build(column, 5)
    assert index.starts.tolist() == [0, 2, 4, 6, 8]
    assert index.places.tolist() == list(range(8))
    assert (index.blocks == 0xFFFFFFFFFFFFFFFF).all()


def test_counters_follow_the_query(data, index):
    """Rows added and taken away leave the counts of matching symbols, whatever octave they lie in."""
    state = data[5].copy()
    nothing = bitmaps.IndexRow(index.blocks, index.places, 0, 0)
    planes = block.zero_blocks(len(index.valid), counters.planes_for(LENGTH))
    for column in range(LENGTH):
        counters.exchange(planes, nothing, row_of(index, column, state[column]))
    counters.exchange(planes, row_of(index, 3, state[3]), row_of(index, 3, (state[3] + 1) % SYMBOLS))
    state[3] = (state[3] + 1) % SYMBOLS
    matches = (data == state).sum(axis=1)
    masks, counts = block.zero_blocks(8, len(index.valid)), np.zeros(8, np.int64)
    touched = np.zeros(len(index.valid), np.int64)
    for octave in (0, 1):
        masks[:] = 1  # whatever an earlier octave left
        actual = counters.split_octave(planes, index.valid, octave, masks, touched, counts)
        for k in range(8):
            counters.clear_untouched(masks[k], touched, actual)
            assert np.array_equal(members(masks[k]), np.flatnonzero(matches == 8 * octave + k))
            assert counts[k] == np.count_nonzero(matches == 8 * octave + k)


@pytest.mark.parametrize("moves", [1, 7, 12])
def test_many_moves_at_once_count_like_one_after_the_other(moves):
    data = np.random.default_rng(moves).integers(0, 2, (1500, 20), dtype=np.uint8)
    data[:600, 4] = 0  # the first block of the row of ones is not stored
    index = bitmaps.build(np.ascontiguousarray(data.T), 2)
    planes = block.zero_blocks(len(index.valid), counters.planes_for(20))
    nothing = bitmaps.IndexRow(index.blocks, index.places, 0, 0)
    for column in range(20):
        counters.exchange(planes, nothing, row_of(index, column, 0))
    together = planes.copy()
    for column in range(moves):
        counters.exchange(planes, row_of(index, column, 0), row_of(index, column, 1))
    gained = np.array([bitmaps.find_row(index, column, 1) for column in range(moves)])
    counters.exchange_binary(together, index, gained, block.zero_blocks(7, len(index.valid)))
    bits = index.valid[:, None]  # what is counted beyond the last key does not matter
    assert np.array_equal(together & bits, planes & bits)


@pytest.mark.parametrize("size", [1, 20, 9000])
def test_both_ways_to_count_agreement_agree(data, index, size):
    chosen_keys = np.sort(np.random.default_rng(size).choice(KEYS, size, replace=False))
    places = len(index.valid)
    mask, state = mask_of(places, chosen_keys), data[0]
    columns, chosen = np.arange(LENGTH)[::-1].copy(), np.array([0, 7, 3])
    expected = [np.count_nonzero(data[chosen_keys, LENGTH - 1 - n] == state[LENGTH - 1 - n]) for n in chosen]
    rows = [row_of(index, LENGTH - 1 - n, state[LENGTH - 1 - n]) for n in chosen]
    assert [agreement.count_by_row(row, mask) for row in rows] == expected
    listed, tally = np.zeros(KEYS, np.int64), np.zeros(3, np.int64)
    listed = listed[: agreement.list_keys(mask, np.arange(places), listed)]
    assert np.array_equal(listed, chosen_keys)
    agreement.count_by_keys(data, listed, state, columns, chosen, tally)
    assert tally.tolist() == expected


def test_a_row_of_an_index_that_is_not_stored_is_the_same(data, index, monkeypatch):
    monkeypatch.setattr(bitmaps, "MAX_BYTES", 0)
    scanned = bitmaps.build(np.ascontiguousarray(data.T), SYMBOLS + 1)
    assert not scanned.stored
    scratch, every_place = block.zero_blocks(len(index.valid)), np.arange(len(index.valid), dtype=np.int32)
    number = bitmaps.find_row(scanned, 3, 2)
    row = bitmaps.index_row(scanned, 3, number, 2, scratch, every_place)
    assert np.array_equal(members(row.blocks), np.flatnonzero(data[:, 3] == 2))
    missing = bitmaps.find_row(scanned, 3, SYMBOLS)
    empty = bitmaps.index_row(scanned, 3, missing, SYMBOLS, scratch, every_place)
    assert empty.first == empty.end


def test_constant_columns_are_left_out():
    data = np.array([[3, 1, 0], [3, 0, 0], [3, 2, 0]], dtype=np.uint8)
    prepared = keys.prepare(data, 4)
    assert prepared.columns.tolist() == [1]
    assert prepared.constants.tolist() == [3, -1, 0]
    alike = keys.prepare(data[:1], 4)
    assert alike.columns.tolist() == [0]  # one column stays, to count in
