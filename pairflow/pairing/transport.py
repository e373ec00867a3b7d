"""Semidiscrete optimal transport between noise and data, token rows or points.

Each data row gets a potential, a number that makes all rows equally likely. A source (a row of noise) is
assigned to a near data row, drawn from the law P(m | z). So the noise keeps exactly its distribution, and
every pair can have new noise. See docs/method.md, "Semidiscrete transport".
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.arguments import checked_choice, checked_integer, checked_number
from pairflow.arrays import checked_points, checked_tokens
from pairflow.errors import InputError
from pairflow.limits import MAX_VOCABULARY
from pairflow.pairing.posterior import UNITS
from pairflow.pairing.prior import NOISES, frequencies
from pairflow.pairing.spaces import PointSpace, Space, space_of
from pairflow.runtime.progress import announced_compilation, bar, bars_of_a_function

if TYPE_CHECKING:
    import torch

TOLERANCE = 0.1  # the spread of balanced rows differs from 1 by at most this
HITS = 4  # sources per row on average, for which the spread is stated
_MEASURED = 200_000  # least number of sources in a measurement, for an accurate spread of few rows
_STEPS = 400  # largest number of steps
_BETWEEN = 20  # steps between two measurements
_DRAWS = 32  # rows drawn per source in a step: almost as good as its whole posterior
_LEAST = 2048  # least number of sources in a step
_MEMORY = 0.02  # least weight of a step in the moving average of the shares
_BLOCK = 1 << 22  # tokens, or numbers, of sources in memory at once
_TRIES = 64  # sources per row that `sources` draws at most
_COMPILING = "Compiling the transport engine, which takes about a minute, once per installation"


class Balance(NamedTuple):
    """Measures of a coupling, on sources that its search did not use.

    Attributes:
        spread: variance / mean of the number of sources per row, for HITS sources per row on average; it is 1
            if all rows are equally likely.
        distance: the mean Hamming distance of source and row, in positions; of points, the mean squared
            distance.
        information: the mutual information I(x0; x1) in nats, at most log M.
    """

    spread: float
    distance: float
    information: float

    @property
    def reached(self) -> bool:
        """Whether all rows are equally likely, up to `TOLERANCE` in the spread."""
        return abs(self.spread - 1) <= TOLERANCE


@dataclass(frozen=True, eq=False)
class SemidiscreteCoupling:
    """A coupling of noise with data (M, ...). `draw` draws pairs, and `rows` assigns given sources to rows.

    Attributes:
        space: the data, with their noise and distance.
        tau: the temperature.
        seed: every random number follows from it.
        potentials: (M,) int32 in units of tau / 4; the greatest is 0.
        balance: the measures of the coupling, or None if it was not measured.
    """

    space: Space = field(repr=False)
    tau: float
    seed: int
    potentials: np.ndarray = field(repr=False)
    balance: Balance | None = None

    @property
    def data(self) -> np.ndarray:
        """The data (M, ...)."""
        return self.space.data

    def rows(self, sources: ArrayLike, numbers: ArrayLike, *, threads: int | None = None) -> np.ndarray:
        """Assign sources to data rows.

        Args:
            sources: (S, ...).
            numbers: (S,) integers from 0 on, which select the sources' random numbers.
            threads: number of CPU threads, at most one per CPU that the process may use; None uses as many.

        Returns:
            Row numbers (S,) int64.

        Raises:
            InputError: for sources of the wrong length or with unknown symbols, or for wrong numbers.
        """
        sources = self.space.checked(sources)
        numbers = np.asarray(numbers)
        if numbers.shape != (len(sources),) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
            raise InputError(f"numbers: expected {len(sources)} integers from 0 on, one for each source")
        drawn, _ = self._law.draw(sources, numbers, self.seed, threads=threads)
        return drawn[:, 0].astype(np.int64)

    def draw(
        self, count: int, first: int = 0, *, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw pairs of sources and data.

        Args:
            count: the number of pairs.
            first: the number of the first source: other numbers give other pairs.
            threads: number of CPU threads, at most one per CPU that the process may use; None uses as many.

        Returns:
            x0 and x1, each (count, ...).

        Raises:
            InputError: if `count` or `first` is out of range.
        """
        count = checked_integer("count", count, 1, 2**40)
        first = checked_integer("first", first, 0, 2**62)
        numbers = np.arange(first, first + count)
        x0 = self.space.sources(self.seed, numbers)
        x1 = self.data[self.rows(x0, numbers, threads=threads)]
        return x0.reshape(x1.shape), x1

    def sources(self, threads: int | None = None) -> np.ndarray:
        """Draw a source x0 (M, ...) for each row from P(z | m): the first source that is assigned to the row.

        If no source is assigned to a row after 64 M tries, it gets an independent one. This happens only if
        the rows are not balanced.
        """
        rows, space = len(self.data), self.space
        seed = rng.stream_seed(self.seed, "sources")
        # Numbers 0 to M - 1 are only for rows that no source reaches: the loop begins behind them.
        x0 = space.sources(seed, np.arange(rows))
        missing = np.ones(rows, bool)
        count = max(1, min(rows, _BLOCK // space.length))
        for first in range(rows, _TRIES * rows, count):
            if not missing.any():
                break
            numbers = np.arange(first, first + count)
            drawn = space.sources(seed, numbers)
            ends, _ = self._law.draw(drawn, numbers, seed, threads=threads)
            # The first occurrence counts, so that a row keeps its first source, whatever the block size.
            hit, indices = np.unique(ends[:, 0], return_index=True)
            new = missing[hit]
            x0[hit[new]] = drawn[indices[new]]
            missing[hit] = False
        return x0.reshape(self.data.shape)

    @cached_property
    def _law(self) -> Any:
        return self.space.law(self.potentials.max() - self.potentials.astype(np.int64), self.tau)

    def measured(
        self,
        threads: int | None = None,
        after_block: Callable[[], None] = lambda: None,
        until_clear: bool = False,
    ) -> Balance:
        """Measure the balance on HITS M sources (more if M is small) of a separate random stream.

        `after_block` is called after each block of sources, since many long rows take minutes. With
        `until_clear` the measurement ends as soon as it is clear that the rows are not balanced.
        """
        rows, space = len(self.data), self.space
        count = max(HITS * rows, _MEASURED)
        # The balance must be measured on sources that no step has seen, so they have their own stream.
        seed, hits = rng.stream_seed(self.seed, "balance"), np.zeros(rows, np.int64)
        distance = entropy = 0.0
        # Blocks decide the order in which floats are added, so their size does not depend on the threads.
        size = max(1, _BLOCK // space.length)
        for first in range(0, count, size):
            numbers = np.arange(first, min(first + size, count))
            sources = space.sources(seed, numbers)
            drawn, entropies = self._law.draw(sources, numbers, seed, threads=threads)
            hits += np.bincount(drawn[:, 0], minlength=rows)
            distance += float(space.distances(sources, drawn[:, 0]).sum())
            entropy += float(entropies.sum())
            after_block()
            # Squared coefficient of variation of the rows' probabilities, without the Poisson noise of the
            # hits. Of balanced rows it is 0, with a standard deviation of about sqrt(2 / M) / mean.
            excess = (hits.var() / hits.mean() - 1) / hits.mean()
            if until_clear and HITS * (excess - 4 * np.sqrt(2 / rows) / hits.mean()) > TOLERANCE:
                break
        total = int(hits.sum())
        return Balance(
            spread=float(1 + HITS * excess),
            distance=distance / total,
            information=float(np.log(rows) - entropy / total),
        )


class Search:
    """The search for the potentials of data (M, ...), by averaged Sinkhorn steps on fresh sources.

    A step draws rows for new sources and updates a moving average of each row's share of the draws (1 is
    balanced). Rows that are drawn too often lose potential: it falls by eta * 2 (share - 1) / (share + 1), in
    units of tau, for a step size eta. This is eta log(share) to second order, but unlike a logarithm the same
    on every machine. The result is the mean of the potentials over at least the later half of the steps: from
    the last but one of the steps 0, 20, 40, 80, ... on. Only `step` and `state` change, and must be saved.
    """

    def __init__(self, space: Space, tau: float, seed: int, threads: int | None = None):
        """Set up a search with potentials 0, at temperature `tau`; InputError if a number is out of range."""
        self.space, self.step = space, 0
        self.tau = checked_number("tau", tau, 0.01, 100)
        self.seed = checked_integer("seed", seed, 0, 2**64 - 1)
        self.threads = None if threads is None else checked_integer("threads", threads, 1, 4096)
        names = ("potentials", "shares", "older sum", "newer sum")
        self.state = {name: np.full(len(space.data), float(name == "shares")) for name in names}

    def advance(self) -> None:
        """Take a step: draw rows for new sources; update `step`, and the potentials and shares in `state`."""
        rows = len(self.space.data)
        count = max(_LEAST, rows // 4)
        seed = rng.stream_seed(self.seed, "potentials")
        # The sources depend only on the number of the step, so a search that resumes draws the same ones.
        numbers = np.arange(self.step * count, (self.step + 1) * count)
        sources = self.space.sources(seed, numbers)
        potentials, shares = self.state["potentials"], self.state["shares"]
        law = self.space.law(_buckets(potentials), self.tau)
        drawn, _ = law.draw(sources, numbers, seed, draws=_DRAWS, threads=self.threads)
        hits = np.bincount(drawn.ravel(), minlength=rows)
        # Weight and step size fall: early shares are of poor potentials, late steps only average out noise.
        weight = max(_MEMORY, 1 / (1 + self.step / 4))
        shares += weight * (hits * (rows / drawn.size) - shares)
        potentials -= min(1.0, 4 * weight + 0.1) * 2 * (shares - 1) / (shares + 1)
        self.step += 1
        self.state["newer sum"] += potentials
        if self.step == _last_mark(self.step):
            self.state["older sum"], self.state["newer sum"] = self.state["newer sum"], np.zeros(rows)

    def result(self) -> SemidiscreteCoupling:
        """Return the coupling with the means of the potentials over the later steps.

        They are rounded to multiples of tau / 4, and shifted so that the greatest is 0.
        """
        mark = _last_mark(self.step)
        since = mark // 2 if mark > _BETWEEN else 0
        means = (self.state["older sum"] + self.state["newer sum"]) / (self.step - since)
        potentials = -_buckets(means).astype(np.int32)
        return SemidiscreteCoupling(self.space, self.tau, self.seed, potentials)


def sources_needed(rows: int) -> int:
    """Estimate the work of a search for M = `rows` rows, as a number of sources with one draw each.

    Most searches take 60 steps. The further draws of a source in a step take half as long again: hence the
    factor 3 / 2.
    """
    steps, measured = 3 * _BETWEEN, 3 * max(HITS * rows, _MEASURED)
    return 3 * steps * max(_LEAST, rows // 4) // 2 + measured + 12 * rows


def _last_mark(step: int) -> int:
    """Return the greatest of 0, 20, 40, 80, ... up to `step`."""
    return _BETWEEN << (step // _BETWEEN).bit_length() - 1 if step >= _BETWEEN else 0


def _buckets(potentials: np.ndarray) -> np.ndarray:
    """Return how many units each of the potentials (M,), in multiples of tau, is below the greatest."""
    units = np.floor(potentials * UNITS + 0.5).astype(np.int64)
    return units.max() - units


@bars_of_a_function()
def transport(
    tokens: ArrayLike,
    *,
    vocabulary_size: int,
    tau: float = 0.2,
    noise: str = "uniform",
    seed: int = 0,
    threads: int | None = None,
    device: "str | torch.device" = "cpu",
    progress: bool = True,
) -> SemidiscreteCoupling:
    """Couple sources (rows of noise) with the rows of `tokens` by semidiscrete transport.

    See docs/method.md, "Semidiscrete transport".

    Args:
        tokens: (M, N) integers in [0, K), at least two different rows.
        vocabulary_size: K, the number of symbols, 2 to 65536.
        tau: the temperature, in positions. Near 0 a source is assigned to the nearest row that the balance
            allows; at a large tau, source and row are independent.
        noise: "uniform", or "frequencies": sources have the symbols of each position as often as the rows.
        seed: 0 to 2^64 - 1; every random number follows from it.
        threads: number of CPU threads, at most one per CPU that the process may use; None uses as many.
        device: "cpu", or "cuda" or another torch device, which compares sources and rows by matrix products.
        progress: whether to show a progress bar, after a second, in a terminal or a notebook.

    Returns:
        A `SemidiscreteCoupling`, whose `draw` gives any number of pairs (x0, x1). Its bytes depend only on
        `tokens`, K, tau, `noise` and `seed`, not on threads or device. If `balance.reached` is false, some
        rows are drawn more often than others.

    Raises:
        InputError: if an argument is out of range, or the device is not available.

    Example:
        >>> import numpy as np, pairflow
        >>> tokens = np.array([[0, 1, 2], [2, 1, 0]])
        >>> x0, x1 = pairflow.transport(tokens, vocabulary_size=3, progress=False).draw(5)
    """
    from pairflow.pairing.continuous import torch_device

    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    rows = checked_tokens(tokens, size)
    by_frequency = checked_choice("noise", noise, NOISES) == "frequencies"
    pi = frequencies(rows, size) if by_frequency else None
    space = space_of(rows, size, torch_device(device), pi)
    require_different_rows("tokens", space.data)
    with announced_compilation(_COMPILING, quiet=not progress):
        return complete(Search(space, tau, seed, threads), progress=progress)


@bars_of_a_function()
def transport_continuous(
    data: ArrayLike,
    *,
    tau: float = 0.2,
    seed: int = 0,
    device: "str | torch.device" = "auto",
    progress: bool = True,
) -> SemidiscreteCoupling:
    """Couple noise from N(0, I) with rows of real numbers by semidiscrete transport.

    See docs/continuous.md, "Semidiscrete transport".

    Args:
        data: (M, ...) real numbers, at least two different rows: vectors, images, or rows of any other shape.
        tau: the temperature, in units of |x0 - x1|^2 / 2.
        seed: 0 to 2^64 - 1; every random number follows from it.
        device: "cpu", "cuda", a torch device, or "auto": the GPU if there is one, else the CPU.
        progress: whether to show a progress bar, after a second, in a terminal or a notebook.

    Returns:
        A `SemidiscreteCoupling`, as from `transport`. Other devices and numbers of threads round sums in
        float32 differently, so that a source may be assigned to another row.

    Raises:
        InputError: if an argument is out of range, or the device is not available.

    Example:
        >>> import numpy as np, pairflow
        >>> data = np.random.default_rng(0).normal(size=(100, 2))
        >>> x0, x1 = pairflow.transport_continuous(data, progress=False).draw(5)
    """
    from pairflow.pairing.continuous import torch_device

    space = PointSpace(checked_points(data), torch_device(device))
    require_different_rows("data", space.data)
    return complete(Search(space, tau, seed), progress=progress)


def require_different_rows(name: str, data: np.ndarray) -> None:
    """Raise InputError if all rows of the data (M, ...) are equal; the message begins with `name`."""
    if (data == data[0]).all():
        raise InputError(f"{name}: expected at least two different rows, found only one")


def complete(
    search: Search, *, progress: bool, after_step: Callable[[], None] = lambda: None
) -> SemidiscreteCoupling:
    """Take steps until the rows are balanced, at most 400; return the coupling with its balance.

    `after_step` is called after each step, and after each block of a measurement. A search that resumes from
    a saved step repeats the measurement that was due there, so its result is the same.
    """
    with bar(total=_STEPS, desc="potentials", unit="step", quiet=not progress, initial=search.step) as steps:
        while True:
            if search.step and search.step % _BETWEEN == 0:
                coupling = search.result()
                last = search.step >= _STEPS
                balance = coupling.measured(search.threads, after_step, until_clear=not last)
                steps.set_postfix_str(f"hits' variance/mean {balance.spread:.2f}")
                if balance.reached or last:
                    return replace(coupling, balance=balance)
            search.advance()
            steps.update()
            after_step()
