"""The public function `pair`, which checks its arguments, splits rows into subsets and calls an engine."""

import sys
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.arguments import checked_choice, checked_integer, row_range
from pairflow.arrays import checked_tokens
from pairflow.errors import InputError
from pairflow.limits import KEYS, MAX_VOCABULARY, least_subsets
from pairflow.pairing import frequency_rule, oracle
from pairflow.pairing.gpu import engine as gpu
from pairflow.pairing.prior import NOISES, frequencies
from pairflow.runtime.progress import announced_compilation, bars_of_a_function

if TYPE_CHECKING:
    from pairflow.config import PairSettings

_COMPILING = "Compiling the pairing engine, which takes about 20 s, once per installation"
BACKENDS = ("auto", "cpu", "gpu", "reference")
GPU_COMPARISONS = 10**13  # token comparisons that take two cores 7 s, about as long as loading CuPy


@bars_of_a_function()
def pair(
    tokens: ArrayLike,
    *,
    vocabulary_size: int,
    steps: int = 20,
    subsets: int | Literal["auto"] = 1,
    keys: int = KEYS,
    noise: str = "uniform",
    seed: int = 0,
    backend: str = "auto",
    threads: int | None = None,
    progress: bool = True,
    rows: tuple[int, int] | None = None,
) -> "np.ndarray | Any":
    """Pair every row of `tokens` with a source x0, a row of noise, by Algorithm 1 of PairFlow.

    This needs no network. See docs/method.md, "Backward pairing (Algorithm 1)" and "Subsets".

    Args:
        tokens: (M, N) integers in [0, K), an array, a list or a torch tensor; N is at most 16384.
        vocabulary_size: K, the number of symbols, 2 to 65536.
        steps: T, the number of backward steps.
        subsets: P. With P > 1 the rows are divided at random into P parts, and a row is paired only within
            its own part, at 1/P of the cost. With "auto", P is the least number of parts that have at most
            `keys` rows each, so that the cost grows in proportion to M.
        keys: the most rows of a part, for "auto".
        noise: "uniform", or "frequencies": sources have the symbols of each position as often as the rows
            (docs/method.md, "Noise by frequency").
        seed: 0 to 2^64 - 1; every random number follows from it.
        backend: "cpu", "gpu", "reference" (the slow oracle) or "auto": the GPU from 10^13 token comparisons
            M M N T / P on, if CuPy and a suitable CUDA device are available, else the CPU. All give the same
            bytes. The GPU has no noise by frequency.
        threads: number of CPU threads, at most one per CPU that the process may use; None uses as many.
        progress: whether to show a progress bar, after a second, in a terminal or a notebook.
        rows: (first, last) returns only the rows first..last-1 of the whole pairing: a shard.

    Returns:
        (M, N) source states in the dtype of `tokens`, or, if that cannot hold K - 1, in the smallest unsigned
        one that can. They depend only on `tokens`, K, T, P, `noise` and `seed`. Of a torch tensor they are an
        int64 tensor on the same device.

    Raises:
        InputError: if an argument is out of range, or the backend is not available.

    Example:
        >>> import numpy as np, pairflow
        >>> tokens = np.array([[0, 1, 2], [2, 1, 0]])
        >>> pairflow.pair(tokens, vocabulary_size=3, progress=False).shape
        (2, 3)
    """
    how: dict[str, Any] = {"steps": steps, "subsets": subsets, "keys": keys, "noise": noise, "seed": seed}
    how |= {"backend": backend, "threads": threads, "progress": progress}
    torch = sys.modules.get("torch")  # not imported here: pairing does not need it
    given: Any = tokens
    if torch is None or not isinstance(given, torch.Tensor):
        return Pairer(tokens, vocabulary_size=vocabulary_size, **how).sources(rows)
    array = given.cpu() if given.is_cuda else given
    sources = Pairer(array, vocabulary_size=vocabulary_size, **how).sources(rows)
    return torch.from_numpy(sources.astype(np.int64)).to(given.device)


class Pairer:
    """Pairs rows as `pair` does, for several ranges of rows: packed tokens stay on a GPU between calls."""

    def __init__(
        self,
        tokens: ArrayLike,
        *,
        vocabulary_size: int,
        steps: int,
        subsets: int | Literal["auto"],
        seed: int,
        backend: str,
        threads: int | None,
        progress: bool,
        keys: int = KEYS,
        noise: str = "uniform",
    ):
        size = checked_integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
        self.tokens = checked_tokens(tokens, size)
        steps = checked_integer("steps", steps, 1, 2**32 - 1)
        keys = checked_integer("keys", keys, 1, 10**9)
        if isinstance(subsets, str) and subsets == "auto":  # no array
            subsets = least_subsets(len(self.tokens), keys)
        self.subsets = checked_integer(f"subsets (of {len(self.tokens)} rows)", subsets, 1, len(self.tokens))
        self.seed = checked_integer("seed", seed, 0, 2**64 - 1)
        self.noise, self.vocabulary_size = checked_choice("noise", noise, NOISES), size
        self.rule: dict[str, Any] = {"steps": steps, "seed": self.seed}
        if self.by_frequency:
            self.rule["prior"] = frequencies(self.tokens, size)
        else:
            self.rule["vocabulary_size"] = size
        if threads is not None:
            threads = checked_integer("threads", threads, 1, 4096)
        if backend not in BACKENDS:
            raise InputError(f"backend: expected one of {', '.join(BACKENDS)}; found {backend!r}")
        self.backend, self.threads, self.progress = backend, threads, progress
        if self.by_frequency and backend == "gpu":
            raise InputError('backend: "gpu" has no noise by frequency; choose "cpu" or "auto"')
        comparisons = len(self.tokens) * self.tokens.size * steps // self.subsets
        self.on_gpu = not self.by_frequency and _takes_gpu(backend, comparisons)
        self._engine = self._make_engine()

    @property
    def by_frequency(self) -> bool:
        """Whether symbols are as frequent in the noise as in the data."""
        return self.noise == "frequencies"

    def sources(self, rows: tuple[int, ...] | None = None) -> np.ndarray:
        """Return the sources of the rows first..last-1, for `rows` = (first, last), or of all rows."""
        first, last = row_range(rows, len(self.tokens))
        sources = np.empty_like(self.tokens[first:last])
        for part in self.parts:
            queries = part[(first <= part) & (part < last)]
            if len(queries):
                sources[queries - first] = self.pair_rows(part, queries)
        return sources

    def sources_in_order(self, first: int, last: int) -> np.ndarray:
        """Return the sources of the rows order[first:last]; `self.order` lists one subset after another."""
        sources, begin = np.empty_like(self.tokens[first:last]), 0
        for part in self.parts:
            queries = part[max(0, first - begin) : max(0, last - begin)]
            if len(queries):
                start = max(first, begin) - first
                sources[start : start + len(queries)] = self.pair_rows(part, queries)
            begin += len(part)
        return sources

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """The row numbers of each subset, ascending."""
        return subset_rows(len(self.tokens), self.subsets, self.seed)

    @cached_property
    def order(self) -> np.ndarray | None:
        """The row numbers (M,) of one subset after another; None for one subset, in the order of the data."""
        return None if self.subsets == 1 else np.concatenate(self.parts)

    def compile(self) -> None:
        """Compile the engine of the backend in use, by `compile_for`."""
        backend = "gpu" if self.on_gpu else self.backend
        compile_for(self.tokens, vocabulary_size=self.vocabulary_size, backend=backend, noise=self.noise)

    def pair_rows(self, part: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Return the sources (b, N) of the rows with the numbers `queries` (b,), paired within `part`.

        `part` has the row numbers of a subset. If the GPU fails, the CPU takes over, except with the backend
        "gpu": then InputError is raised.
        """
        # Without a copy the GPU engine sees that it has packed these keys already.
        keys = self.tokens if self.subsets == 1 else self.tokens[part]
        try:
            return self._engine(keys, self.tokens[queries], queries, **self.rule)
        except gpu.UnusableGpu as error:
            self._leave_gpu(str(error))
            self._engine = self._make_engine()
            return self._engine(keys, self.tokens[queries], queries, **self.rule)

    def _make_engine(self) -> Callable[..., np.ndarray]:
        if self.backend == "reference":
            return frequency_rule.pair_rows if self.by_frequency else oracle.pair_rows
        if self.on_gpu:
            layout = gpu.KernelLayout.choose(self.tokens.shape[1], self.rule["vocabulary_size"])
            try:
                return gpu.GpuPairer(gpu.Cuda(), layout, progress=self.progress).pair_rows
            except gpu.UnusableGpu as error:
                self._leave_gpu(str(error))
        options: dict[str, Any] = {"threads": self.threads, "progress": self.progress}
        return partial(_pair_rows_on_cpu, by_frequency=self.by_frequency, **options)

    def _leave_gpu(self, reason: str) -> None:
        """Note that the CPU takes over because of `reason`. Raise InputError if the backend is "gpu"."""
        if self.backend == "gpu":
            raise InputError(f'backend: "gpu" {reason}') from None
        _note_that_the_cpu_pairs(reason)
        self.on_gpu = False


class RowwisePairer:
    """Computes sources like `Pairer`, if the source of a row does not depend on other rows.

    `draw((first, last))` returns the sources of the rows first..last-1, and `count` is the number of all
    rows.
    """

    on_gpu, subsets, order = False, 1, None

    def __init__(self, count: int, draw: Callable[[tuple[int, ...]], np.ndarray]):
        self.count, self.draw = count, draw

    def sources(self, rows: tuple[int, ...] | None = None) -> np.ndarray:
        """Return the sources of the rows first..last-1, for `rows` = (first, last), or of all rows."""
        return self.draw(rows or (0, self.count))

    def sources_in_order(self, first: int, last: int) -> np.ndarray:
        """Return the sources of the rows first..last-1, which stay in the order of the data."""
        return self.draw((first, last))

    def compile(self) -> None:
        """Do nothing: there is nothing to compile."""


def make_pairer(
    tokens: np.ndarray, settings: "PairSettings", *, vocabulary_size: int, **options: Any
) -> Pairer | RowwisePairer:
    """Return the object that computes the sources of a coupling (`settings.coupling`) for ranges of rows.
    `options` are `backend`, `threads` and `progress`, as in `pair`."""
    from pairflow.config import BASES
    from pairflow.config.training import FREQUENCIES

    if not BASES[settings.coupling].closed_form:
        if settings.noise == FREQUENCIES:
            from pairflow.pairing.cpu.numbers import tokens_by_frequency

            draw = partial(tokens_by_frequency, settings.seed, pi=frequencies(tokens, vocabulary_size))
            return RowwisePairer(len(tokens), lambda rows: draw(np.arange(*rows)))
        size = tokens.shape[1], vocabulary_size
        return RowwisePairer(
            len(tokens), lambda rows: rng.uniform_tokens(settings.seed, np.arange(*rows), *size)
        )
    rule = {name: getattr(settings, name) for name in ("steps", "subsets", "keys", "noise", "seed")}
    return Pairer(tokens, vocabulary_size=vocabulary_size, **rule, **options)


def compile_for(
    tokens: np.ndarray, *, vocabulary_size: int, backend: str = "auto", noise: str = "uniform"
) -> None:
    """Compile the engine for the dtype and length of `tokens` (M, N), so that `pair` need not do it later.

    It pairs two rows in one step; cached machine code is reused. Args are as in `pair`.
    """
    with announced_compilation(_COMPILING):
        settings: dict[str, Any] = {"vocabulary_size": vocabulary_size, "steps": 1, "noise": noise}
        pair(tokens[:2], **settings, backend=backend, progress=False)


def subset_rows(count: int, subsets: int, seed: int) -> list[np.ndarray]:
    """Divide the rows 0..count-1 into parts at random (docs/method.md, "Subsets").

    Args:
        count: M, the number of rows.
        subsets: P, the number of parts.
        seed: determines the partition.

    Returns:
        P arrays of ascending row numbers, whose sizes differ by at most 1.
    """
    if subsets == 1:
        return [np.arange(count)]
    return [np.sort(part) for part in np.array_split(rng.random_order(seed, count), subsets)]


def _pair_rows_on_cpu(*rows: np.ndarray, by_frequency: bool, progress: bool, **options: Any) -> np.ndarray:
    from pairflow.pairing.cpu import engine, frequencies

    pair_rows = frequencies.pair_rows if by_frequency else engine.pair_rows
    with announced_compilation(_COMPILING, quiet=not progress):
        return pair_rows(*rows, progress=progress, **options)


def _takes_gpu(backend: str, comparisons: int) -> bool:
    """Return whether a GPU pairs: with `backend` "gpu", or with "auto" if it is faster and can be used.

    It is faster from a number of token `comparisons` on. Raises InputError if "gpu" is not available. Prints
    a note if "auto" finds a GPU that cannot be used.
    """
    if backend not in ("auto", "gpu") or (backend == "auto" and comparisons < GPU_COMPARISONS):
        return False
    reason = gpu.missing()
    if reason and backend == "gpu":
        raise InputError(f'backend: "gpu" {reason}')
    if reason and reason.gpu:
        _note_that_the_cpu_pairs(str(reason))
    return reason is None


@cache
def _note_that_the_cpu_pairs(reason: str) -> None:
    """Print a note that the CPU pairs instead of the GPU, once for each `reason`."""
    print(f"pairflow: note: the CPU pairs, because the GPU engine {reason}", file=sys.stderr)
