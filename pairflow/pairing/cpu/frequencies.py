"""The CPU engine of Algorithm 1 for noise by frequency: the same bytes as `frequency_rule.pair_rows`.

Why it is fast:

- Only a position whose random number is below its rate can leave, whatever the data (as in `engine`).
- Each key (data row) has a mask of the positions where it matches the state, 12 in a number of 16 bits, which
  is updated as positions change. Its score is the sum of one entry per number, from tables with the sums of
  all 4096 subsets of 12 positions. Constant columns are left out.
- The weights are approximate, with a known bound of the error of w_i. If a decision is nearer than that, in
  one of some thousand, the step is repeated by the rule.

In addition to the memory of the keys, each thread takes N/6 + 4 bytes per key.
"""

import math
import threading
from functools import partial
from typing import NamedTuple

import numpy as np

from pairflow.pairing.cpu.block import WORDS
from pairflow.pairing.cpu.compiled import compiled
from pairflow.pairing.cpu.numbers import draw, philox, split, uniform
from pairflow.pairing.frequency_rule import BackwardSteps
from pairflow.runtime.threads import run_blocks

_LOOKUPS = 1 << 29  # per task, a second: Ctrl-C waits for one task at most
_BITS = 12  # positions in a number of a mask
_KEYS = 256  # keys whose weights are summed in float32
_NEGLIGIBLE = 44  # bits: M weights of 2^-44 are nothing
_FRACTION = 20  # bits of a score after the point, fewer for long rows


class _Keys(NamedTuple):
    columns: np.ndarray  # (C, M): the columns that vary
    places: np.ndarray  # (C,): their positions
    constants: np.ndarray  # (N,): the symbol of a constant column, -1 for others


class _Law(NamedTuple):
    prior: np.ndarray  # (N, K)
    cumulative: np.ndarray  # (N, K)
    steps: int
    scale: float  # units of a score per bit
    error: float  # of w_i, at most


class _Workspace(NamedTuple):
    masks: np.ndarray  # (G, M)
    shown: np.ndarray  # (C,): the symbols whose matches `masks` has; -1 at first
    tables: np.ndarray  # (G, 2^12): the scores of all subsets of 12 positions
    scores: np.ndarray  # (M,)
    greatest: np.ndarray  # of each block of _KEYS scores
    weights: np.ndarray  # (_KEYS,)
    positions: np.ndarray  # (N',): 0, 1, 2, ..., whole blocks
    words: np.ndarray  # (N',)
    uniforms: np.ndarray  # (N',)
    open: np.ndarray  # (N,): columns whose w_i is needed
    thresholds: np.ndarray  # (N,): a position leaves if w_i is above it
    sums: np.ndarray  # (N,): w_i
    leaving: np.ndarray  # (N,): positions


def pair_rows(
    data: np.ndarray,
    queries: np.ndarray,
    row_numbers: np.ndarray,
    *,
    prior: np.ndarray,
    steps: int,
    seed: int,
    threads: int | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Pair rows as `frequency_rule.pair_rows` does: the same arguments give the same bytes.

    `data` (M, N) are all data rows, `queries` (B, N) those to pair, `row_numbers` (B,) their numbers in the
    data set, and `prior` (N, K) the probabilities of the noise's symbols. Returns sources (B, N), which do
    not depend on the number of `threads` (None: all that the process may use). `progress` shows a bar.
    """
    exact = BackwardSteps(data, prior, steps, seed)
    keys = _prepare(data, prior.shape[1])
    law = _law(exact, len(keys.columns), len(data))
    sources, numbers = queries.copy(), np.asarray(row_numbers, np.uint64)
    local = threading.local()

    def pair_block(rows: slice) -> None:
        if not hasattr(local, "work"):
            local.work = _workspace(len(data), data.shape[1], len(keys.columns))
        for z, number in zip(sources[rows], numbers[rows], strict=True):
            state, step = z.astype(np.int64), steps
            while step := _walk(keys, law, state, number, np.uint64(seed), step, local.work):
                state[:] = exact.take(state[None], number[None], step)[0]
                step -= 1
            z[:] = state

    size = max(1, _LOOKUPS // (data.size * steps))
    run_blocks(pair_block, len(queries), size, threads=threads, progress=progress, name="pairing")
    return sources


def _prepare(data: np.ndarray, vocabulary_size: int) -> _Keys:
    varies = (data != data[0]).any(axis=0)
    columns = np.ascontiguousarray(data.T[varies], np.min_scalar_type(vocabulary_size - 1))
    return _Keys(columns, np.flatnonzero(varies), np.where(varies, -1, data[0].astype(np.int64)))


def _law(exact: BackwardSteps, columns: int, keys: int) -> _Law:
    most = max(1, columns) * math.log2(1 + exact.steps / exact.prior.min())  # bits of the greatest score
    fraction = min(_FRACTION, 30 - math.ceil(math.log2(most)))
    # Gains are rounded; `_powers` and sums of _KEYS numbers are accurate to 3e-5; a part may be left out.
    weight_error = columns * 2.0**-fraction / 2 + 3e-5
    error = 2 * weight_error + keys * 2.0**-_NEGLIGIBLE
    return _Law(exact.prior, exact.cumulative, exact.steps, 2.0**fraction, error)


def _workspace(keys: int, length: int, columns: int) -> _Workspace:
    groups, blocks = -(-columns // _BITS), -(-keys // _KEYS)
    positions = np.arange(-(-length // WORDS) * WORDS, dtype=np.uint64)
    return _Workspace(
        np.zeros((groups, keys), np.uint16),
        np.full(columns, -1),
        np.zeros((groups, 1 << _BITS), np.int32),
        np.zeros(keys, np.int32),
        np.zeros(blocks, np.int32),
        np.zeros(_KEYS, np.float32),
        positions,
        np.zeros_like(positions),
        np.zeros(len(positions)),
        np.zeros(length, np.int64),
        np.zeros(length),
        np.zeros(length),
        np.zeros(length, np.int64),
    )


@compiled
def _walk(keys, law, z, row, seed, step, work):
    """Move z (N,) in place, from t = step/T towards 0, as long as all decisions are certain despite rounding.

    Returns 0 at the source; else the step from z that `BackwardSteps.take` must compute exactly.
    """
    row_words, seed_words = split(row), split(seed)
    while step > 0:
        draw(work.positions, np.uint64(step), row_words, seed_words, work.words, work.uniforms)
        leaving, number = _find_open(keys, law, z, step, work)
        if number > 0:
            _match(keys, z, work)
            best = _score(keys, law, z, step, work)
            _agree(work, best, np.float32(-1 / law.scale), number)
            for j in range(number):
                if abs(work.sums[j] - work.thresholds[j]) <= law.error:
                    return step
                if work.sums[j] > work.thresholds[j]:
                    work.leaving[leaving] = keys.places[work.open[j]]
                    leaving += 1
        for i in work.leaving[:leaving]:
            _, _, w2, w3 = philox(np.uint64(i), np.uint64(step), *row_words, *seed_words)
            z[i] = np.searchsorted(law.cumulative[i], uniform(w2, w3), side="right")
        step -= 1
    return 0


@compiled
def _find_open(keys, law, z, step, work):
    """Find the positions that leave for certain, and the columns where w_i (share of matches) decides.

    Writes them to `work.leaving` and `work.open` (with `work.thresholds`); returns how many of each there
    are.
    """
    kappa, leaving, number, column = step / law.steps, 0, 0, 0
    for i in range(len(z)):
        constant = keys.constants[i]
        rate = 1 / law.steps / (kappa + (1 - kappa) * law.prior[i, z[i]])
        if work.uniforms[i] < rate:
            if step == law.steps or constant == z[i]:
                work.leaving[leaving] = i
                leaving += 1
            elif constant < 0:
                work.open[number], work.thresholds[number] = column, work.uniforms[i] / rate
                number += 1
        column += constant < 0
    return leaving, number


@compiled
def _match(keys, z, work):
    """Update `work.masks`, the positions where each key matches the state, to the state z (N,)."""
    for c in range(len(keys.columns)):
        symbol = z[keys.places[c]]
        if work.shown[c] != symbol:
            work.shown[c] = symbol
            column, mask = keys.columns[c], work.masks[c // _BITS]
            bit = np.uint16(1 << (c % _BITS))
            others = np.uint16(~bit)
            for key in range(len(column)):
                mask[key] = (mask[key] & others) | (bit if column[key] == symbol else np.uint16(0))


@compiled
def _score(keys, law, z, step, work):
    """Fill `work.scores` with the score of each key at the state z (N,), and return the greatest.

    A score is the binary logarithm of a key's weight times `law.scale`. `work.greatest` gets the greatest
    score of each block of keys.
    """
    odds = step / (law.steps - step)  # kappa / (1 - kappa)
    for c in range(len(keys.columns)):
        i, size, table = keys.places[c], 1 << (c % _BITS), work.tables[c // _BITS]
        gain = np.int32(np.rint(law.scale * math.log2(1 + odds / law.prior[i, z[i]])))
        for subset in range(size):
            table[size + subset] = table[subset] + gain
    best = np.int32(0)
    for block in range(len(work.greatest)):
        # Numba takes vector instructions for an index from 0 to the length of an array.
        scores = work.scores[block * _KEYS : (block + 1) * _KEYS]
        for group in range(len(work.tables)):
            table, mask = work.tables[group], work.masks[group][block * _KEYS : (block + 1) * _KEYS]
            if group == 0:
                for key in range(len(mask)):
                    scores[key] = table[mask[key]]
            else:
                for key in range(len(mask)):
                    scores[key] += table[mask[key]]
        greatest = scores[0]
        for key in range(len(scores)):
            greatest = max(greatest, scores[key])
        work.greatest[block] = greatest
        best = max(best, greatest)
    return best


@partial(compiled, sums_in_any_order=True)  # the error is allowed for
def _agree(work, best, scale, number):
    """Fill work.sums[:number] with approximate w_i of the open columns: weighted shares of matching keys.

    There are `number` of them, in `work.open`. `best` is the greatest score. (score - best) * `scale` is the
    number of bits by which a key's weight is below the greatest.
    """
    total, weights, sums = 0.0, work.weights, work.sums
    sums[:number] = 0.0
    for block in range(len(work.greatest)):
        if (work.greatest[block] - best) * scale > _NEGLIGIBLE:
            continue
        scores, part = work.scores[block * _KEYS : (block + 1) * _KEYS], np.float32(0)
        for key in range(len(scores)):
            bits = np.float32(scores[key] - best) * scale
            # 2^-bits is the 64th power of exp(y), and y is small enough for eight terms.
            y = min(bits, np.float32(_NEGLIGIBLE)) * np.float32(-math.log(2) / 64)
            power = np.float32(1 / 5040)
            for coefficient in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
                power = power * y + np.float32(coefficient)
            for _ in range(6):
                power *= power
            weights[key] = power
            part += power
        total += float(part)
        for j in range(number):
            c = work.open[j]
            mask = work.masks[c // _BITS][block * _KEYS : (block + 1) * _KEYS]
            bit, part = np.uint16(1 << (c % _BITS)), np.float32(0)
            for key in range(len(mask)):
                part += weights[key] if mask[key] & bit else np.float32(0)
            sums[j] += part
    for j in range(number):
        sums[j] /= total
