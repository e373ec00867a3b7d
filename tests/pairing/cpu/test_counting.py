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
    return counters.IndexRow(index.blocks, index.places, index.starts[row], index.starts[row + 1])


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
    nothing = counters.IndexRow(index.blocks, index.places, 0, 0)
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
        counters.clear_untouched(masks, touched, actual)
        for k in range(8):
            assert np.array_equal(members(masks[k]), np.flatnonzero(matches == 8 * octave + k))
            assert counts[k] == np.count_nonzero(matches == 8 * octave + k)


@pytest.mark.parametrize("levels", [1, 2, 4, 7])
def test_all_ways_to_count_agreement_agree(data, index, levels):
    rng = np.random.default_rng(levels)
    sizes = (1, 300, 9000, 20, 5, 40_000, 77)[:levels]
    chosen_keys = [np.sort(rng.choice(KEYS, size, replace=False)) for size in sizes]
    places = len(index.valid)
    masks = block.zero_blocks(8, places)
    for k, chosen in enumerate(chosen_keys):
        masks[k + 1] = mask_of(places, chosen)
    pairs = np.array([(k + 1, 6 - k) for k in range(levels)])
    state = keys.padded_rows(data[:1])[0]
    state[4] = SYMBOLS  # which no key holds
    expected = np.zeros((8, len(state)), np.int32)
    for k, chosen in enumerate(chosen_keys):
        expected[6 - k, :LENGTH] = (data[chosen] == state[:LENGTH]).sum(axis=0)
    rows = np.array([bitmaps.find_row(index, i, state[i]) for i in range(LENGTH)])

    by_rows = np.zeros_like(expected)
    agreement.add_by_rows(index.blocks, index.places, index.starts, rows, masks, pairs, by_rows)
    assert np.array_equal(by_rows, expected)

    scanned, scratch = np.zeros_like(expected), block.zero_blocks(places)
    columns = np.zeros((LENGTH, places * block.BITS), np.uint8)
    columns[:, :KEYS] = data.T
    every_place = np.arange(places, dtype=np.int32)
    agreement.add_by_scanned_rows(columns, rows, state, masks, pairs, scanned, scratch, every_place)
    assert np.array_equal(scanned, expected)

    tokens, tally, listed = keys.padded_rows(data), np.zeros(len(state), np.uint8), np.zeros(KEYS, np.int64)
    for k, chosen in enumerate(chosen_keys):
        actual = agreement.list_keys(masks[k + 1], np.arange(places), listed)
        assert np.array_equal(listed[:actual], chosen)
        by_keys = np.zeros(len(state), np.int32)
        agreement.add_by_keys(tokens, state, listed[:actual], tally, by_keys)
        assert np.array_equal(by_keys[:LENGTH], expected[6 - k, :LENGTH])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 500, 3000])
def test_packed_keys_count_the_same(size):
    rng = np.random.default_rng(size)
    data = rng.integers(0, 2, (3000, 700), dtype=np.uint8)
    packed = keys.prepare(data, 2).packed
    data = data[keys.sorted_rows(data)]
    listed = rng.choice(3000, size, replace=False)
    counts, sums = np.zeros(1024, np.int32), block.zero_blocks(32)
    agreement.add_by_packed_keys(packed, packed[9].copy(), listed, sums, counts)
    assert np.array_equal(counts[:700], (data[listed] == data[9]).sum(axis=0))


def test_constant_columns_are_left_out():
    data = np.array([[3, 1, 0], [3, 0, 0], [3, 2, 0]], dtype=np.uint8)
    prepared = keys.prepare(data, 4)
    assert prepared.columns.tolist() == [1]
    assert prepared.constants.tolist() == [3, -1, 0]
    alike = keys.prepare(data[:1], 4)
    assert alike.columns.tolist() == [0]  # one column stays, to count in
