"""The law of semidiscrete transport: the probabilities P(m | z) of the data rows m for a source z.

A source is a row of noise. P(m | z) is proportional to exp((g_m - h(z, d_m)) / tau), where g_m is the
potential of the data row d_m, h the Hamming distance and tau a temperature (docs/method.md, "Semidiscrete
transport"). The oracle and the engines compute it by these points, so that they agree bit for bit:

1. Potentials are multiples of the unit tau / 4. The *bucket* b of a row is the number of units between its
   potential and the greatest; its *level* g is its distance minus that of the nearest row. Rows with the same
   level and bucket form a *cell*, and n[g, b] is their number.
2. near[g] = exp(-1 / tau)^g and high[b] = exp(-1 / 4)^b by repeated multiplication, in float64 on the host.
3. From the nearest level on, and in each level bucket by bucket, total += n[g, b] * (near[g] * high[b]) in
   float64. Stop after level g once (rows not yet counted) * near[g + 1] <= 1e-9 * total.
4. Non-empty cells of these levels get integer weights, with total = m * 2^e and 1/2 <= m < 1:
   W[g, b] = floor(near[g] * high[b] * 2^(52 - e)). They add up to less than 2^53, exactly.
5. The draw u = uniform(seed, source's number, STEP, draw's number) is the integer
   min(floor(u * sum), sum - 1). Subtracting n W cell by cell, in the order of point 3, leads to a cell and
   to a row in it: cells hold their rows in the order of `sorted_by_bucket`.
"""

import math

import numpy as np

from pairflow.pairing.cpu.keys import sorted_rows
from pairflow.pairing.rule import TOLERANCE, WEIGHT_BITS

UNITS = 4  # a unit of the potentials is tau / UNITS
STEP = 2**32 - 2  # the step of these random numbers: see `rng`


def nearness(tau: float, length: int) -> np.ndarray:
    """Return the factors near[g] (point 2 above), by which levels lower the weights of rows.

    They are float64, for the levels g = 0..N + 1, where N is `length`.
    """
    return np.multiply.accumulate(np.r_[1.0, np.full(length + 1, math.exp(-1 / tau))])


def heights(buckets: int) -> np.ndarray:
    """Return the factors high[b] (point 2 above), by which buckets lower the weights of rows.

    They are float64, for the buckets b = 0..`buckets` - 1.
    """
    return np.multiply.accumulate(np.r_[1.0, np.full(buckets - 1, math.exp(-1 / UNITS))])


def sorted_by_bucket(tokens: np.ndarray, buckets: np.ndarray) -> np.ndarray:
    """Return the row numbers of `tokens` (M, N), sorted by bucket, and within a bucket as by `sorted_rows`.

    `buckets` (M,) has the bucket of each row: by how many units tau / 4 its potential is below the greatest.
    """
    order = sorted_rows(tokens)
    return order[np.argsort(buckets[order], kind="stable")]


def add_level(counts: np.ndarray, near: float, high: np.ndarray) -> float:
    """Return what one level adds to the total weight: the sum over buckets b of counts[b] * (near * high[b]).

    `counts` (B,) has the number of the level's rows in each bucket, `near` is exp(-1 / tau)^g of the level g,
    and `high` (B,) has exp(-1 / 4)^b of each bucket. Numba compiles this function and `weigh` unchanged.
    """
    total = 0.0
    for bucket in range(len(counts)):
        # The brackets are part of point 3: (count * near) * high would round differently.
        total += counts[bucket] * (near * high[bucket])
    return total


def is_enough(left: int, near: float, total: float) -> bool:
    """Return whether the rows that are not counted yet are negligible (point 3 above).

    These are `left` rows, with weights of at most `near`; `total` is that of the counted levels.
    """
    return left * near <= TOLERANCE * total


def weigh(
    counts: np.ndarray, levels: int, near: np.ndarray, high: np.ndarray, total: float, weights: np.ndarray
) -> int:
    """Write the integer weight W[g, b] of a row in each level g < `levels` and bucket b to `weights` (L, B).

    It is floor(near[g] * high[b] * 2^(52 - e)), with the exponent e of `total` = m * 2^e, 1/2 <= m < 1; and 0
    where no row is. `counts` (L, B) has the numbers of rows. Returns the sum of the weights over all rows.
    """
    shift = WEIGHT_BITS - math.frexp(total)[1]
    total_weight = 0
    for level in range(levels):
        for bucket in range(counts.shape[1]):
            is_there = counts[level, bucket] > 0
            weights[level, bucket] = int(math.ldexp(near[level] * high[bucket], shift)) if is_there else 0
            total_weight += counts[level, bucket] * weights[level, bucket]
    return total_weight
