"""One step of Algorithm 1 in exact arithmetic, for noise with a law of its own at each position.

pi_i(a) is the probability of symbol a at position i of the noise, mostly `prior.frequencies`; for pi = 1 / K
this is the law of `rule`. A *query* is a state z, a *key* is a data point d_m. For step s = T..1, at t = s/T
with kappa(t) = t (docs/method.md, "Noise by frequency"):

1. A match at position i counts g_i = round(2^40 log2(1 + kappa / ((1 - kappa) pi_i(z^i)))), an integer. The
   logarithm is a series in float64: library functions differ between machines in the last bit.
2. The score of a key is the sum of g_i over the positions where d_m^i = z^i, exact in int64.
3. Its weight is 2^-(D / 2^40) in float64, where D is the greatest score minus its own.
4. w_i = (sum of the weights of the keys with d_m^i = z^i) / (sum of all weights). Both sums are correctly
   rounded (`math.fsum`), whatever the order. At step T, t = 1, only keys equal to z count, and z is a data
   point: w_i = 1.
5. Position i leaves if u < rate_i * w_i, where

       rate_i = (1/T) * kappa'(t) / (kappa(t) + (1 - kappa(t)) pi_i(z^i))

6. Its new symbol, which may be the old one, is the first a with v < pi_i(0) + ... + pi_i(a). The two uniform
   numbers u and v are `rng.two_uniforms` of seed, row, s and i.
"""

import math

import numpy as np

from pairflow import rng

FRACTION_BITS = 40  # points 1 and 3; up to N = 16384 the scores fit into int64


class BackwardSteps:
    """The steps of Algorithm 1 among keys `data` (M, N), for the law `prior` (N, K) of the noise.

    `steps` is T.
    """

    def __init__(self, data: np.ndarray, prior: np.ndarray, steps: int, seed: int):
        self.data, self.prior, self.steps, self.seed = data, prior, steps, seed
        self.cumulative = cumulative(prior)

    def take(self, z: np.ndarray, row_numbers: np.ndarray, step: int) -> np.ndarray:
        """Return the states (B, N) at t = (step - 1) / T from `z` (B, N), the states at t = step / T.

        `row_numbers` (B,) select the random numbers.
        """
        likely = np.take_along_axis(self.prior, z.T.astype(np.int64), axis=1).T  # (B, N): pi_i(z^i)
        u, v = rng.two_uniforms(self.seed, row_numbers, step, z.shape[1])
        rates = step_rates(likely, step, self.steps)
        z = z.copy()
        for b, state in enumerate(z):
            consensus = np.ones(len(state))
            open_ = np.flatnonzero(u[b] < rates[b])  # w_i <= 1, so that the others stay
            if step < self.steps:
                gains = match_gains(likely[b], step / self.steps)
                consensus[open_] = local_consensus(state, self.data, gains, open_)
            for i in open_[u[b, open_] < rates[b, open_] * consensus[open_]]:
                state[i] = np.searchsorted(self.cumulative[i], v[b, i], side="right")
        return z


def pair_rows(
    data: np.ndarray,
    queries: np.ndarray,
    row_numbers: np.ndarray,
    *,
    prior: np.ndarray,
    steps: int,
    seed: int,
) -> np.ndarray:
    """Pair rows by Algorithm 1 with noise by frequency: slow code that defines the result.

    `data` (M, N) are all data rows, the keys; `queries` (B, N), some of them, are to be paired; `row_numbers`
    (B,) are their numbers in the data set. `prior` (N, K) has the probabilities of the noise's symbols, and
    `steps` is T. Returns sources (B, N).
    """
    backward, z = BackwardSteps(data, prior, steps, seed), queries
    for step in range(steps, 0, -1):
        z = backward.take(z, row_numbers, step)
    return z


def cumulative(prior: np.ndarray) -> np.ndarray:
    """Return the sums pi_i(0) + ... + pi_i(a) of the probabilities `prior` (N, K), over symbols a.

    The last is exactly 1, so that every uniform number below 1 draws a symbol.
    """
    sums = prior.cumsum(axis=1)
    sums[:, -1] = 1.0
    return sums


def step_rates(likely: np.ndarray, step: int, steps: int) -> np.ndarray:
    """Return rate_i of point 5 above: how likely each position is to change, apart from w_i.
    `likely` has the probabilities pi_i(z^i) of the symbols there."""
    kappa = step / steps
    return 1 / steps / (kappa + (1 - kappa) * likely)


def match_gains(likely: np.ndarray, kappa: float) -> np.ndarray:
    """Return how much a match at each position adds to the score of a data row: g_i of point 1 above, int64.
    `likely` has the probabilities pi_i(z^i) of the state's symbols in the noise; kappa < 1."""
    bits = _log2(1 + kappa / ((1 - kappa) * likely))
    return np.rint(np.ldexp(bits, FRACTION_BITS)).astype(np.int64)


def local_consensus(z: np.ndarray, data: np.ndarray, gains: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return w_i for some `positions` of a state `z` (N,): the weighted share of data rows that match there.

    `data` (M, N) are the data rows. `gains` (N,), from `match_gains`, are what a match at each position adds
    to a row's score, from which its weight follows.
    """
    agree = data == z  # (M, N)
    weights = key_weights(agree @ gains)
    counts = weights > 0
    agree, weights = agree[counts], weights[counts]
    total = math.fsum(weights.tolist())
    return np.array([math.fsum(weights[agree[:, i]].tolist()) / total for i in positions])


def key_weights(scores: np.ndarray) -> np.ndarray:
    """Return the weights 2^-(D / 2^40) of data rows whose `scores` (M,) int64 are D below the greatest."""
    below = scores.max() - scores
    whole, part = below >> FRACTION_BITS, below & ((1 << FRACTION_BITS) - 1)
    power = np.ldexp(part, -FRACTION_BITS) * -math.log(2)  # above -0.694
    weight = np.ones(len(scores))
    for k in range(18, 0, -1):  # the series of exp, with all its digits
        weight = 1 + power / k * weight
    return np.ldexp(weight, -whole.astype(np.int32))


def _log2(x: np.ndarray) -> np.ndarray:
    """Return the binary logarithm, by the series of 2 artanh((m - 1) / (m + 1)) for m from 0.7 to 1.4."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < math.sqrt(0.5)
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    s = (mantissa - 1) / (mantissa + 1)
    series = np.zeros_like(s)
    for k in range(25, 0, -2):
        series = series * (s * s) + 1 / k
    return exponent + 2 / math.log(2) * s * series
