"""Semidiscrete optimal transport between noise and data, which are token rows or points.

Every row gets a potential such that all rows are drawn equally often, and a source goes to a near row by the
law P(m | z). So the noise keeps its distribution exactly, and every draw has fresh noise. See docs/method.md,
"Semidiscrete transport".
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.arguments import checked_integer, checked_number
from pairflow.arrays import checked_points, checked_tokens
from pairflow.errors import InputError
from pairflow.limits import MAX_VOCABULARY
from pairflow.pairing.posterior import UNITS
from pairflow.pairing.spaces import PointSpace, Space, space_of
from pairflow.runtime.progress import announced_compilation, bar

TOLERANCE = 0.1  # by which the variance of the hits may differ from their mean, once the rows are balanced
HITS = 4  # of a row on average, to which the spread is scaled
_MEASURED = 200_000  # sources at least, so that the spread of few rows is known as well
_STEPS = 400  # at most
_BETWEEN = 20  # steps between two measurements
_DRAWS = 32  # rows that a source is asked for in a step: almost as good as its whole posterior
_LEAST = 2048  # sources of a step
_MEMORY = 0.02  # the least weight of a step in the mean of the shares
_BLOCK = 1 << 22  # tokens, or numbers, of sources at a time
_TRIES = 64  # sources for each row, of which one is to go to it
_COMPILING = "Compiling the transport engine, which takes about a minute, once per installation"


class Balance(NamedTuple):
    """What a coupling is like, measured on sources that its potentials have not seen.

    spread: variance over mean of the rows' hits if each has HITS on average; 1 if all rows are equally
    likely. distance: mean Hamming distance of source and row, in positions; of points, mean squared distance.
    information: I(x0; x1) in nats, at most log M.
    """

    spread: float
    distance: float
    information: float

    @property
    def reached(self) -> bool:
        """Whether all rows are equally likely, up to `TOLERANCE` in the spread of their hits."""
        return abs(self.spread - 1) <= TOLERANCE


@dataclass(frozen=True, eq=False)
class SemidiscreteCoupling:
    """A coupling of noise with data (M, ...): `draw` it, or ask where given sources go.

    `potentials` (M,) int32 are in units of tau / 4, the greatest is 0. `balance` is what was measured.
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
        """The rows (S,) int64 that `sources` (S, ...) go to, each drawn by its number (S,) and the seed.

        InputError for sources of another length or with other symbols, and for numbers that are no integers
        from 0 on, one for each source.
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
        """Pairs (x0, x1), each (count, ...), of the sources number `first` and the following ones.

        InputError for a count or a number out of range.
        """
        count = checked_integer("count", count, 1, 2**40)
        first = checked_integer("first", first, 0, 2**62)
        numbers = np.arange(first, first + count)
        x0 = self.space.sources(self.seed, numbers)
        x1 = self.data[self.rows(x0, numbers, threads=threads)]
        return x0.reshape(x1.shape), x1

    def sources(self, threads: int | None = None) -> np.ndarray:
        """A source x0 (M, N) for each row: the first, by its number, that goes to the row.

        That is a draw from P(z | m). A row that none of many sources goes to keeps an independent one, which
        happens only to rows that are not balanced.
        """
        rows, space = len(self.data), self.space
        seed = rng.stream_seed(self.seed, "sources")
        x0 = space.sources(seed, np.arange(rows))
        missing = np.ones(rows, bool)
        count = max(1, min(rows, _BLOCK // space.length))
        for first in range(rows, _TRIES * rows, count):
            if not missing.any():
                break
            numbers = np.arange(first, first + count)
            drawn = space.sources(seed, numbers)
            ends, _ = self._law.draw(drawn, numbers, seed, threads=threads)
            hit, which = np.unique(ends[:, 0], return_index=True)
            new = missing[hit]
            x0[hit[new]] = drawn[which[new]]
            missing[hit] = False
        return x0.reshape(self.data.shape)

    @cached_property
    def _law(self) -> Any:
        return self.space.law(self.potentials.max() - self.potentials.astype(np.int64), self.tau)

    def measured(self, threads: int | None = None, after_block: Callable[[], None] = lambda: None) -> Balance:
        """The balance, of at least HITS M sources that come from a seed of their own.

        `after_block` is called after some of them: all of many long rows take minutes.
        """
        rows, space = len(self.data), self.space
        count = max(HITS * rows, _MEASURED)
        seed, hits = rng.stream_seed(self.seed, "balance"), np.zeros(rows, np.int64)
        distance = entropy = 0.0
        size = max(1, _BLOCK // space.length)
        for first in range(0, count, size):
            numbers = np.arange(first, min(first + size, count))
            sources = space.sources(seed, numbers)
            drawn, entropies = self._law.draw(sources, numbers, seed, threads=threads)
            hits += np.bincount(drawn[:, 0], minlength=rows)
            distance += float(space.distances(sources, drawn[:, 0]).sum())
            entropy += float(entropies.sum())
            after_block()
        excess = (hits.var() / hits.mean() - 1) / hits.mean()  # squared variation of the rows' probabilities
        return Balance(
            spread=float(1 + HITS * excess),
            distance=distance / count,
            information=float(np.log(rows) - entropy / count),
        )


class Search:
    """The potentials of data (M, ...), by averaged Sinkhorn steps on fresh sources.

    In a step each source is asked for rows, the shares of the rows are averaged over the steps, and a row
    that was drawn too often loses potential: gamma -= eta * 2 (share - 1) / (share + 1), in units of tau,
    which is eta log(share) to second order and, unlike a logarithm, the same on every machine. The result is
    the mean of the potentials over the later half of the steps or more: since the last but one of the steps
    0, 20, 40, 80, ... `step` and `state` are all that changes.
    """

    def __init__(self, space: Space, tau: float, seed: int, threads: int | None):
        self.space, self.tau, self.seed, self.threads = space, tau, seed, threads
        self.step = 0
        names = ("potentials", "shares", "older sum", "newer sum")
        self.state = {name: np.full(len(space.data), float(name == "shares")) for name in names}

    def advance(self) -> None:
        """Take a step."""
        rows = len(self.space.data)
        count = max(_LEAST, rows // 4)
        seed = rng.stream_seed(self.seed, "potentials")
        numbers = np.arange(self.step * count, (self.step + 1) * count)
        sources = self.space.sources(seed, numbers)
        potentials, shares = self.state["potentials"], self.state["shares"]
        law = self.space.law(_buckets(potentials), self.tau)
        drawn, _ = law.draw(sources, numbers, seed, draws=_DRAWS, threads=self.threads)
        hits = np.bincount(drawn.ravel(), minlength=rows)
        weight = max(_MEMORY, 1 / (1 + self.step / 4))
        shares += weight * (hits * (rows / drawn.size) - shares)
        potentials -= min(1.0, 4 * weight + 0.1) * 2 * (shares - 1) / (shares + 1)
        self.step += 1
        self.state["newer sum"] += potentials
        if self.step == _last_mark(self.step):
            self.state["older sum"], self.state["newer sum"] = self.state["newer sum"], np.zeros(rows)

    def result(self) -> SemidiscreteCoupling:
        """The coupling of the mean potentials."""
        mark = _last_mark(self.step)
        since = mark // 2 if mark > _BETWEEN else 0
        means = (self.state["older sum"] + self.state["newer sum"]) / (self.step - since)
        potentials = -_buckets(means).astype(np.int32)
        return SemidiscreteCoupling(self.space, self.tau, self.seed, potentials)


def sources_needed(rows: int) -> int:
    """About how many sources a search leads to M = `rows` rows if 60 steps balance them, as they mostly do.

    The further draws of a step's sources take about half of their time again.
    """
    steps, measured = 3 * _BETWEEN, 3 * max(HITS * rows, _MEASURED)
    return 3 * steps * max(_LEAST, rows // 4) // 2 + measured + 12 * rows


def _last_mark(step: int) -> int:
    """The last of the steps 20, 40, 80, ... that is not after `step`; 0 before the first."""
    return _BETWEEN << (step // _BETWEEN).bit_length() - 1 if step >= _BETWEEN else 0


def _buckets(potentials: np.ndarray) -> np.ndarray:
    """How many units potentials (M,), in tau, lie below the greatest one."""
    units = np.floor(potentials * UNITS + 0.5).astype(np.int64)
    return units.max() - units


def transport(
    tokens: ArrayLike,
    *,
    vocabulary_size: int,
    tau: float = 0.2,
    seed: int = 0,
    threads: int | None = None,
    device: Any = "cpu",
    progress: bool = True,
) -> SemidiscreteCoupling:
    """The semidiscrete coupling of uniform sources with the rows of `tokens`, at temperature tau.

    See docs/method.md, "Semidiscrete transport".

    Args:
        tokens: (M, N) integers in [0, K), at least two different rows.
        vocabulary_size: K, the number of symbols, 2 to 65536.
        tau: the temperature, in positions. Near 0 a source goes to the nearest row that the balance allows;
            a large one makes source and row independent.
        seed: 0 to 2^64 - 1; every random number follows from it.
        threads: number of CPU threads; None uses all that the process may use.
        device: "cpu", or "cuda" or another torch device, which compares sources and rows by matrix products.
        progress: whether to show a progress bar.

    Returns:
        A `SemidiscreteCoupling`, whose `draw` gives as many pairs (x0, x1) as wanted. Its bytes depend only
        on `tokens`, K, tau and `seed`, not on threads or device. Where `balance.reached` is false, some rows
        are drawn more often than others.

    Raises:
        InputError: if an argument is out of range, or the device is not available.

    Example:
        >>> import numpy as np, pairflow
        >>> tokens = np.array([[0, 1, 2], [2, 1, 0]])
        >>> x0, x1 = pairflow.transport(tokens, vocabulary_size=3, progress=False).draw(5)
    """
    from pairflow.pairing.continuous import torch_device

    size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    space = space_of(checked_tokens(tokens, size), size, torch_device(device))
    require_different_rows("tokens", space.data)
    with announced_compilation(_COMPILING, quiet=not progress):
        return complete(start(space, tau, seed, threads), progress=progress)


def transport_continuous(
    data: ArrayLike, *, tau: float = 0.2, seed: int = 0, device: Any = "auto", progress: bool = True
) -> SemidiscreteCoupling:
    """The semidiscrete coupling of noise from N(0, I) with real numbers, at temperature tau.

    See docs/continuous.md, "Semidiscrete transport".

    Args:
        data: (M, ...) real numbers, at least two different rows: vectors, images, or rows of any other shape.
        tau: the temperature, in halves of squared distances.
        seed: 0 to 2^64 - 1; every random number follows from it.
        device: "cpu", "cuda", a torch device, or "auto": the GPU if there is one, else the CPU.
        progress: whether to show a progress bar.

    Returns:
        A `SemidiscreteCoupling`, as `transport` gives it. Between devices, and between numbers of threads,
        sums in float32 round differently, so that a source may go to another row.

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
    return complete(start(space, tau, seed), progress=progress)


def start(space: Space, tau: float, seed: int, threads: int | None = None) -> Search:
    """A search that has not begun; InputError if an argument is out of range."""
    tau = checked_number("tau", tau, 0.01, 100)
    seed = checked_integer("seed", seed, 0, 2**64 - 1)
    if threads is not None:
        threads = checked_integer("threads", threads, 1, 4096)
    return Search(space, tau, seed, threads)


def require_different_rows(name: str, data: np.ndarray) -> None:
    """InputError that begins with `name` if all rows of the data (M, ...) are equal."""
    if (data == data[0]).all():
        raise InputError(f"{name}: expected at least two different rows, found only one")


def complete(
    search: Search, *, progress: bool, after_step: Callable[[], None] = lambda: None
) -> SemidiscreteCoupling:
    """Take steps until the rows are balanced, at most 400. `after_step` is called after each, and meanwhile
    where their balance is measured.

    A search that resumes at a saved step repeats the measurement that was due there, and so ends alike.
    """
    with bar(total=_STEPS, desc="potentials", unit="step", quiet=not progress, initial=search.step) as steps:
        while True:
            if search.step and search.step % _BETWEEN == 0:
                found = search.result()
                balance = found.measured(search.threads, after_step)
                steps.set_postfix_str(f"hits' variance/mean {balance.spread:.2f}")
                if balance.reached or search.step >= _STEPS:
                    return replace(found, balance=balance)
            search.advance()
            steps.update()
            after_step()
