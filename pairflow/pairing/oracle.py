"""The closed forms of PairFlow in plain float64 NumPy: the reference that the fast engines are tested
against.

K symbols, N positions, M data points; noise at t = 0, data at t = 1; h is the Hamming distance. See
docs/method.md, "Closed-form fields" and "Backward pairing (Algorithm 1)".
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.arguments import checked_integer
from pairflow.arrays import checked_pair
from pairflow.errors import InputError
from pairflow.flow.schedule import PAIRING, Linear, gamma
from pairflow.limits import MAX_VOCABULARY
from pairflow.pairing import posterior, rule

_CHUNK = 1 << 26  # comparisons in memory at once


def local_consensus(
    z: ArrayLike,
    data: ArrayLike,
    t: float,
    *,
    vocabulary_size: int,
    schedule: Linear = PAIRING,
    prior: ArrayLike | None = None,
) -> np.ndarray:
    """Compute w_i(z) = sum_m weight_m(z) [d_m^i = z^i], the posterior probability that z^i is right.

    weight_m(z) is gamma^-h(d_m, z), normalised over m. At t = 1 it is the limit: the nearest data points have
    equal weights (PairFlow; docs/method.md, "Closed-form fields").

    Args:
        z: states (B, N), integers.
        data: data points (M, N), integers.
        t: time in [0, 1].
        vocabulary_size: K, the number of symbols.
        schedule: kappa(t).
        prior: (N, K), the probabilities of the noise's symbols at each position; None for 1 / K each. The
            weights are then the product of 1 + kappa / ((1 - kappa) prior) over the matching positions.

    Returns:
        w, (B, N) float64.

    Raises:
        InputError: if shapes do not fit, values are masked, or `t`, K or `prior` is out of range.
    """
    z, data, size, likely = _checked(z, data, t, vocabulary_size, prior)
    consensus = np.empty(z.shape)
    for chunk, weights in _weights(z, data, schedule.kappa(t), size, likely):
        agree = data == z[chunk, None]  # (b, M, N)
        consensus[chunk] = np.einsum("bm,bmn->bn", weights, agree)
    return consensus


def closed_form_denoiser(
    z: ArrayLike,
    data: ArrayLike,
    t: float,
    *,
    vocabulary_size: int,
    schedule: Linear = PAIRING,
    prior: ArrayLike | None = None,
) -> np.ndarray:
    """Compute p_1|t(x^i | z) = sum_m weight_m(z) [d_m^i = x^i], the posterior of each position of the data.

    weight_m(z), as in `local_consensus`, is gamma^-h(d_m, z), normalised over m. The closed-form forward
    velocity follows from this posterior (PairFlow; docs/method.md, "Closed-form fields"). The arguments are
    states z (B, N), `data` (M, N), the time t, K, kappa(t) and the noise's probabilities `prior` (N, K) or
    None; they and Raises are as in `local_consensus`.

    Returns:
        Probabilities (B, N, K) float64; the last axis, the symbols, sums to 1.
    """
    z, data, size, likely = _checked(z, data, t, vocabulary_size, prior)
    denoiser = np.zeros((*z.shape, size))
    for chunk, weights in _weights(z, data, schedule.kappa(t), size, likely):
        for symbol in np.unique(data):
            denoiser[chunk, :, symbol] = weights @ (data == symbol)
    return denoiser


def closed_form_noise_predictor(
    z: ArrayLike,
    data: ArrayLike,
    t: float,
    *,
    vocabulary_size: int,
    schedule: Linear = PAIRING,
    prior: ArrayLike | None = None,
) -> np.ndarray:
    """Compute p_0|t(x^i | z) = [x^i = z^i] - kappa (K [x^i = z^i] - 1) / (1 + (K-1) kappa) w_i(z).

    This is the posterior of the source, the closed-form noise predictor (PairFlow; docs/method.md,
    "Closed-form fields", and "Noise by frequency" for a `prior`). w is `local_consensus`; the arguments,
    states z (B, N), `data` (M, N), the time t and so on, and Raises are as there.

    Returns:
        (B, N, K) float64; the last axis sums to 1.
    """
    z, data, size, likely = _checked(z, data, t, vocabulary_size, prior)
    consensus = local_consensus(z, data, t, vocabulary_size=size, schedule=schedule, prior=prior)
    stays = z[..., None] == np.arange(size)  # (B, N, K)
    kappa = schedule.kappa(t)
    if likely is not None:
        where_right = (
            np.asarray(prior) * (kappa + (1 - kappa) * stays) / (kappa + (1 - kappa) * likely)[..., None]
        )
        return stays + consensus[..., None] * (where_right - stays)
    shift = kappa / (1 + (size - 1) * kappa) * consensus
    return stays - (size * stays - 1) * shift[..., None]


def pair_rows(data: np.ndarray, queries: np.ndarray, row_numbers: np.ndarray, **numbers: int) -> np.ndarray:
    """Pair data rows with sources by Algorithm 1 of PairFlow (backward pairing).

    `pairing.rule` defines each step.

    Args:
        data: all data rows (M, N), the keys.
        queries: the data rows to pair (B, N).
        row_numbers: the queries' rows in the whole data set (B,), which select their random numbers.
        numbers: `vocabulary_size` (K), `steps` (T) and `seed`.

    Returns:
        Source states (B, N), in the dtype of `queries`.
    """
    *_, x0 = backward_states(data, queries, row_numbers, **numbers)
    return x0.astype(queries.dtype)


def backward_states(
    data: np.ndarray,
    queries: np.ndarray,
    row_numbers: np.ndarray,
    *,
    vocabulary_size: int,
    steps: int,
    seed: int,
) -> Iterator[np.ndarray]:
    """Yield the states (B, N) of Algorithm 1 at t = 1, 1 - 1/T, ..., 0, from queries to sources.

    `data` (M, N) are the keys, `queries` (B, N) the data rows to pair, and `row_numbers` (B,) their rows in
    the whole data set. `steps` is T.
    """
    rates = rule.step_rates(steps, vocabulary_size)
    tables = rule.level_tables(steps, data.shape[1], vocabulary_size)
    z = queries.astype(np.int64)
    yield z
    for step in range(steps, 0, -1):
        consensus = np.stack([_trajectory_consensus(state, data, tables[step - 1]) for state in z])
        uniforms, words = rng.draws(seed, row_numbers, step, z.shape[1])
        jumps = uniforms < rates[step - 1] * consensus
        others = rng.choose(words, np.uint64(vocabulary_size - 1)).astype(np.int64)
        z = np.where(jumps, others + (others >= z), z)
        yield z


def _trajectory_consensus(state: np.ndarray, data: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return w_i (N,): the weighted share of the rows of `data` (M, N) with the symbol of `state` (N,) at i.

    Weights are integers, as `pairing.rule` defines them; `table` (N+1,) is table[g] = gamma^-g of the step.
    """
    agree = data == state  # (M, N)
    level = np.count_nonzero(~agree, axis=1)
    level -= level.min()
    weights = np.zeros(len(table), dtype=np.int64)
    rule.level_weights(np.bincount(level), table, weights)
    weight = weights[level].astype(np.float64)  # (M,), integers whose sums float64 holds exactly
    counts = weight > 0  # mostly few rows; the rows of weight 0 would only take memory
    return weight[counts] @ agree[counts] / weight.sum()


def _weights(
    z: np.ndarray, data: np.ndarray, kappa: float, size: int, likely: np.ndarray | None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield weight_m(z) = gamma^-h(d_m, z), normalised over the data rows d_m, for states z (B, N) in chunks.

    Each item is the slice of B, and the weights (b, M). `size` is K. `likely` (B, N) has the probabilities of
    the symbols of z in the noise, None if they are 1 / K.
    """
    rows = max(1, _CHUNK // data.size)
    for start in range(0, len(z), rows):
        chunk = slice(start, start + rows)
        agree = data == z[chunk, None]  # (b, M, N)
        distance = agree.shape[2] - np.count_nonzero(agree, axis=2)  # (b, M)
        distance -= distance.min(axis=1, keepdims=True)
        # Relative to the nearest key, not all powers underflow; at t = 1 only the nearest keys get 0^0 = 1.
        if likely is None:
            weights = (1 / gamma(kappa, size)) ** distance
        else:
            odds = 1 + kappa / ((1 - kappa) * likely[chunk]) if kappa < 1 else 1 / likely[chunk]
            score = np.einsum("bmn,bn->bm", agree, np.log(odds))
            score[(kappa == 1) & (distance > 0)] = -np.inf
            weights = np.exp(score - score.max(axis=1, keepdims=True))
        yield chunk, weights / weights.sum(axis=1, keepdims=True)


def _checked(
    z: ArrayLike, data: ArrayLike, t: float, vocabulary_size: int, prior: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray | None]:
    """Return z, data and K, checked, and the probabilities (B, N) of the symbols of z in `prior`, or None.

    Raises InputError if shapes do not fit, or `t`, K or `prior` is out of range.
    """
    z, data = checked_pair("z", z, data)
    if not 0 <= t <= 1:
        raise InputError(f"t: expected a time in [0, 1], found {t}")
    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    if prior is None:
        return z, data, size, None
    prior, shape = np.asarray(prior), (z.shape[1], size)
    if prior.shape != shape or not (prior > 0).all() or not np.allclose(prior.sum(axis=1), 1):
        raise InputError(f"prior: expected {shape} probabilities above 0, whose rows have the sum 1")
    return z, data, size, prior[np.arange(len(prior)), z]


def draw_rows(
    sources: np.ndarray,
    numbers: np.ndarray,
    data: np.ndarray,
    buckets: np.ndarray,
    *,
    tau: float,
    seed: int,
    draws: int = 1,
) -> np.ndarray:
    """Draw data rows for sources (rows of noise) from P(m | z): the reference of semidiscrete transport.

    P(m | z) is proportional to exp((g_m - h(z, d_m)) / tau), with the potential g_m of the data row d_m and
    the Hamming distance h; `pairing.posterior` defines its arithmetic.

    Args:
        sources: (S, N) tokens.
        numbers: the sources' numbers (S,), which select their random numbers.
        data: (M, N) tokens.
        buckets: (M,), how many units tau / 4 the potential of each row is below the greatest potential.
        tau: the temperature, in positions.
        seed: every random number follows from it and from `numbers`.
        draws: the number of rows to draw for each source.

    Returns:
        Row numbers (S, draws) int32.
    """
    order = posterior.sorted_by_bucket(data, buckets)
    data, buckets = data[order], buckets[order]
    near, high = posterior.nearness(tau, data.shape[1]), posterior.heights(int(buckets.max()) + 1)
    rows = np.empty((len(sources), draws), np.int32)
    words = rng.draws(seed, numbers, posterior.STEP, draws)[0]  # (S, draws) uniforms
    for source, uniforms, out in zip(sources, words, rows, strict=True):
        levels = (data != source).sum(axis=1)
        levels -= levels.min()
        counts = np.zeros((len(near), len(high)), np.int64)
        np.add.at(counts, (levels, buckets), 1)
        mass, kept, left = 0.0, 0, len(data)
        while left and not (kept and posterior.is_enough(left, near[kept], mass)):
            mass += posterior.add_level(counts[kept], near[kept], high)
            left -= int(counts[kept].sum())
            kept += 1
        weights = np.zeros_like(counts)
        whole = posterior.weigh(counts, kept, near, high, mass, weights)
        ends = np.cumsum(counts * weights)  # cell by cell, level by level
        for n, uniform in enumerate(uniforms):
            pick = min(int(uniform * whole), whole - 1)
            cell = int(np.searchsorted(ends, pick, side="right"))
            level, bucket = divmod(cell, len(high))
            # The rows of a cell have the same weight, so a division finds the row in it.
            number = (pick - (ends[cell - 1] if cell else 0)) // weights[level, bucket]
            members = np.flatnonzero((levels == level) & (buckets == bucket))
            out[n] = order[members[number]]
    return rows
