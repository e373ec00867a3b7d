"""One step of Algorithm 1 in exact arithmetic: which keys count, and with which weights.

The oracle and both engines (CPU, GPU) use this rule, so that they agree bit for bit. A *query* is a state z
of a trajectory, a *key* is a data point d_m. For step s = T..1, at t = s/T (PairFlow, Algorithm 1;
docs/method.md, "Backward pairing (Algorithm 1)"; kappa(t) = t, and `flow.schedule` defines gamma):

1. The level g of a key is its Hamming distance minus that of the nearest key, h(d_m, z) - h_min. Level g has
   n_g keys.
2. table[g] = gamma^-g by repeated multiplication, table[g] = table[g-1] * (1/gamma), in float64 on the host
   (t = 1: 1, 0, 0, ...). A power function would differ between machines.
3. From the nearest level on, total += n_g * table[g] in float64, without fused multiply-add. Stop after level
   g once (keys not yet counted) * table[g+1] <= 1e-9 * total: the later levels are negligible.
4. The levels up to there get integer weights W_g = floor(table[g] * 2^(52-e)), where total = m * 2^e with
   1/2 <= m < 1; later levels have weight 0. A floor loses less than one unit per key, M * 2^-51 of the sum.
5. Sums of integer weights stay below 2^53, so int64 and float64 hold them exactly, in any order of addition:

       sum = sum_m W(m),   agreement_i = sum_m W(m) [d_m^i = z^i],   w_i = agreement_i / sum   (one division)

6. Position i changes if uniform(seed, row, s, i) < rate_s * w_i, where rate_s (float64, host) is

       rate_s = (1/T) * kappa'(t) * (K-1) / (1 + (K-1) kappa(t))

   Its new symbol is y + [y >= z^i], where y = choice(seed, row, s, i) in [0, K-1): uniform over the K-1
   symbols that differ from z^i.
"""

import math

import numpy as np

from pairflow.flow.schedule import gamma

TOLERANCE = 1e-9  # point 3
WEIGHT_BITS = 52  # point 4


def step_rates(steps: int, vocabulary_size: int) -> np.ndarray:
    """Return rate_s for all steps s = 1..T: the largest chance that a position changes.

    At t = s/T with kappa(t) = t it is (1/T) kappa' (K - 1) / (1 + (K - 1) kappa).

    Args:
        steps: T.
        vocabulary_size: K, the number of symbols.

    Returns:
        (T,) float64; entry s - 1 belongs to step s.
    """
    kappa, others = np.arange(1, steps + 1) / steps, vocabulary_size - 1
    return 1 / steps * others / (1 + others * kappa)


def level_tables(steps: int, length: int, vocabulary_size: int, first: int = 1) -> np.ndarray:
    """Return table[g] = gamma(s/T)^-g for all steps: the weight of a key g farther than the nearest.

    gamma(kappa) = (1 + (K - 1) kappa) / (1 - kappa), at kappa = s/T. The powers are repeated products.

    Args:
        steps: T.
        length: N, the positions of a row.
        vocabulary_size: K, the number of symbols.
        first: the first s: 1 for backward steps, which start from s = 1..T; 0 for forward steps, from 0..T-1.

    Returns:
        (T, N+1) float64, with a row for each s.
    """
    kappa = np.arange(first, first + steps) / steps
    tables = np.ones((steps, length + 1))
    tables[:, 1:] = 1 / gamma(kappa, vocabulary_size)[:, None]
    return np.multiply.accumulate(tables, axis=1)


def margin(keys: int) -> float:
    """Return a bound on the error of the rule's w_i, for M = `keys` data rows.

    The exact w_i is sum_m gamma^-h(d_m, z) [d_m^i = z^i] / sum_m gamma^-h(d_m, z), for a state z, data rows
    d_m and the Hamming distance h. The levels that the rule omits (point 3) have less than TOLERANCE of the
    sum, and its floors (point 4) lose less than one unit per key from sums of at least 2^51 units. The
    numerator of w_i loses no more than the sum does, so the error is at most this loss divided by the rule's
    own sum; 2 covers that this sum is smaller, and the rounding in float64, which is far less.
    """
    return 2 * (TOLERANCE + keys * 2.0 ** (1 - WEIGHT_BITS))


def level_weights(counts: np.ndarray, table: np.ndarray, weights: np.ndarray) -> int:
    """Compute the integer weight W_g of a key in each level g (points 3, 4 above); write it to `weights`.

    Farther levels, with less than 1e-9 of the total weight, get none. Numba compiles this function unchanged.

    Args:
        counts: n_g, the number of keys in each level, from the nearest level on, (L,) integers.
        table: table[g] = gamma^-g of this step, float64, at least (L,).
        weights: int64, at least (L,); written up to the returned number.

    Returns:
        The number of levels with a weight.
    """
    left = counts.sum()
    total = 0.0
    kept = 0
    while left > 0:
        # All engines add from the nearest level on: another order would change the last bits of the total.
        total += counts[kept] * table[kept]
        left -= counts[kept]
        kept += 1
        # Without `left > 0` the last level would read behind the end of the table.
        if left > 0 and left * table[kept] <= TOLERANCE * total:
            break
    # A product with a power of two is exact, so that only int() rounds.
    shift = WEIGHT_BITS - math.frexp(total)[1]
    for level in range(kept):
        weights[level] = int(math.ldexp(table[level], shift))
    return kept
