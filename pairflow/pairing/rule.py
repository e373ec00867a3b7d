"""The rule of a trajectory: which keys count in one step of Algorithm 1, and with which weights.

The oracle and both engines (CPU, GPU) follow this rule, so that they agree bit for bit. A *query* is the
state z that walks, a *key* a data point d_m. For step s = T..1, at t = s/T (PairFlow, Algorithm 1;
docs/method.md, "Backward pairing (Algorithm 1)"):

1. The level g of a key is its Hamming distance beyond the nearest key's, h(d_m, z) - h_min; n_g keys have it.
2. table[g] = gamma^-g by repeated multiplication, table[g] = table[g-1] * (1/gamma), in float64 on the host
   (t = 1: 1, 0, 0, ...). A power function would differ between machines.
3. Nearest first, total += n_g * table[g] in float64, without fused multiply-add. Stop after level g once
   (keys not yet seen) * table[g+1] <= 1e-9 * total: the levels left out cannot matter.
4. The kept levels get integer weights W_g = floor(table[g] * 2^(52-e)), where total = m * 2^e with
   1/2 <= m < 1; any other level has weight 0. A floor loses less than one unit per key, M * 2^-51 of the sum.
5. Sums of integer weights stay below 2^53, so int64 and float64 hold them exactly and in any order:

       sum = sum_m W(m),   agreement_i = sum_m W(m) [d_m^i = z^i],   w_i = agreement_i / sum   (one division)

6. Position i leaves if uniform(seed, row, s, i) < rate_s * w_i, where rate_s (float64, host) is

       rate_s = (1/T) * kappa'(t) * (K-1) / (1 + (K-1) kappa(t))

   and moves to y + [y >= z^i], where y = choice(seed, row, s, i) in [0, K-1): uniformly to another symbol.
"""

import math

import numpy as np

from pairflow.flow.schedule import PAIRING, Linear, gamma

TOLERANCE = 1e-9
WEIGHT_BITS = 52


def step_rates(steps: int, vocabulary_size: int, schedule: Linear = PAIRING) -> np.ndarray:
    """rate_s for s = 1..T, as (T,) float64: entry s - 1 belongs to step s."""
    t, others = np.arange(1, steps + 1) / steps, vocabulary_size - 1
    return 1 / steps * schedule.derivative(t) * others / (1 + others * schedule.kappa(t))


def level_tables(
    steps: int, length: int, vocabulary_size: int, schedule: Linear = PAIRING, first: int = 1
) -> np.ndarray:
    """table[g] = gamma(s/T)^-g for g = 0..N, as (T, N+1) float64: a row each for s = first, first + 1, ...

    The backward steps leave from s = 1..T, the forward steps from s = 0..T-1.
    """
    t = np.arange(first, first + steps) / steps
    tables = np.ones((steps, length + 1))
    tables[:, 1:] = 1 / gamma(schedule.kappa(t), vocabulary_size)[:, None]
    return np.multiply.accumulate(tables, axis=1)


def margin(keys: int) -> float:
    """More than the rule's w_i differ from sum_m gamma^-h(d_m, z) [d_m^i = z^i] / sum_m gamma^-h(d_m, z).

    The levels left out (point 3) have less than TOLERANCE of the sum. The floors (point 4) take less than one
    unit per key from sums of at least 2^51 units. Rounding in float64 is far below either.
    """
    return 2 * (TOLERANCE + keys * 2.0 ** (1 - WEIGHT_BITS))


def level_weights(counts: np.ndarray, table: np.ndarray, weights: np.ndarray) -> int:
    """Points 3 and 4 of the rule: fills `weights` with W_g and returns the number of levels kept.

    `counts` (L,) integers holds n_g from the nearest level on, `table` (at least L,) float64 is the step's
    table, `weights` (at least L,) int64 is written up to the returned number. Numba compiles it as it stands.
    """
    left = counts.sum()
    total = 0.0
    kept = 0
    while left > 0:
        total += counts[kept] * table[kept]
        left -= counts[kept]
        kept += 1
        if left > 0 and left * table[kept] <= TOLERANCE * total:
            break
    shift = WEIGHT_BITS - math.frexp(total)[1]
    for level in range(kept):
        weights[level] = int(math.ldexp(table[level], shift))
    return kept
