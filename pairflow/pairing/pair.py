"""The public function `pair`: it checks its arguments, splits the rows into subsets and calls an engine."""

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pairflow import rng
from pairflow.errors import InputError
from pairflow.limits import MAX_VOCABULARY
from pairflow.pairing import oracle
from pairflow.pairing.gpu import engine as gpu
from pairflow.runtime.progress import announced_compilation
from pairflow.tokens import checked_tokens

if TYPE_CHECKING:
    from pairflow.config import PairSettings

_COMPILING = "Compiling the pairing engine, which takes about 20 s, once per installation"
BACKENDS = ("auto", "cpu", "gpu", "reference")


def pair(
    tokens: ArrayLike,
    *,
    vocabulary_size: int,
    steps: int = 20,
    subsets: int = 1,
    seed: int = 0,
    backend: str = "auto",
    threads: int | None = None,
    progress: bool = True,
    rows: tuple[int, int] | None = None,
) -> np.ndarray:
    """The source states x0 of Algorithm 1 (closed-form backward pairing), one for each row of `tokens`.

    See docs/method.md, "Backward pairing (Algorithm 1)" and "Subsets".

    Args:
        tokens: (M, N) integers in [0, K); N is at most 16384.
        vocabulary_size: K, the number of symbols, 2 to 65536.
        steps: T, the number of backward steps.
        subsets: P. With P > 1 the rows are divided at random into P parts, and a row is paired only within
            its own part, at 1/P of the cost.
        seed: 0 to 2^64 - 1; every random number follows from it.
        backend: "auto" (the GPU if CuPy and a CUDA device are present, else the CPU), "cpu", "gpu" or
            "reference" (the slow oracle). All of them give the same bytes.
        threads: number of CPU threads; None uses all that the process may use.
        progress: whether to show a progress bar.
        rows: (first, last) returns only the rows first..last-1 of the whole pairing: a shard.

    Returns:
        (M, N) source states in the dtype of `tokens`, or, if that cannot hold K - 1, in the smallest unsigned
        one that can. They depend only on `tokens`, K, T, P and `seed`.

    Raises:
        InputError: if an argument is out of range, or the backend is not available.

    Example:
        >>> import numpy as np, pairflow
        >>> tokens = np.array([[0, 1, 2], [2, 1, 0]])
        >>> pairflow.pair(tokens, vocabulary_size=3, progress=False).shape
        (2, 3)
    """
    vocabulary_size = _integer("vocabulary_size", vocabulary_size, 2, MAX_VOCABULARY)
    tokens = checked_tokens(tokens, vocabulary_size)
    steps = _integer("steps", steps, 1, 2**32 - 1)
    subsets = _integer(f"subsets (of {len(tokens)} rows)", subsets, 1, len(tokens))
    seed = _integer("seed", seed, 0, 2**64 - 1)
    if threads is not None:
        threads = _integer("threads", threads, 1, 4096)
    first, last = _row_range(rows, len(tokens))
    pair_rows = _engine(backend, threads, progress)
    sources = np.empty_like(tokens[first:last])
    for part in subset_rows(len(tokens), subsets, seed):
        queries = part[(first <= part) & (part < last)]
        if len(queries):
            sources[queries - first] = pair_rows(
                tokens[part],
                tokens[queries],
                queries,
                vocabulary_size=vocabulary_size,
                steps=steps,
                seed=seed,
            )
    return sources


def draw_sources(
    tokens: np.ndarray,
    settings: "PairSettings",
    *,
    vocabulary_size: int,
    rows: tuple[int, ...] | None = None,
    **options: Any,
) -> np.ndarray:
    """The source states of `settings.coupling`; the other arguments are those of `pair`."""
    first, last = rows or (0, len(tokens))
    if settings.coupling == "random":
        numbers = np.arange(first, last)
        return rng.uniform_tokens(settings.seed, numbers, tokens.shape[1], vocabulary_size)
    rule = settings.model_dump(exclude={"coupling"})
    return pair(tokens, vocabulary_size=vocabulary_size, rows=(first, last), **rule, **options)


def compile_for(tokens: np.ndarray, *, vocabulary_size: int, backend: str = "auto") -> None:
    """Compile what pairs tokens (M, N) of this dtype and length, so that it costs `pair` no time later.

    It pairs two rows in one step; machine code that is on disk is only read. Arguments are those of `pair`.
    """
    with announced_compilation(_COMPILING):
        pair(tokens[:2], vocabulary_size=vocabulary_size, steps=1, backend=backend, progress=False)


def jumps_per_step(
    tokens: np.ndarray,
    rows: np.ndarray,
    *,
    vocabulary_size: int,
    steps: int = 20,
    subsets: int = 1,
    seed: int = 0,
) -> np.ndarray:
    """The mean number of positions that jump in each backward step of Algorithm 1, (T,) float64.

    Entry s - 1 belongs to the step from t = s/T. The mean is over the trajectories of `rows`, row numbers of
    `tokens`; the other arguments are those of `pair`. It runs on the CPU.
    """
    from pairflow.pairing.cpu import engine as cpu

    jumps = np.zeros(steps, dtype=np.int64)
    for part in subset_rows(len(tokens), subsets, seed):
        queries = np.intersect1d(part, rows)
        if len(queries):
            settings: dict[str, Any] = {"vocabulary_size": vocabulary_size, "steps": steps, "seed": seed}
            cpu.pair_rows(tokens[part], tokens[queries], queries, **settings, jumps=jumps)
    return jumps / len(rows)


def subset_rows(count: int, subsets: int, seed: int) -> list[np.ndarray]:
    """A random partition of rows 0..count-1 into `subsets` parts of equal size (+-1), each ascending.

    See docs/method.md, "Subsets".
    """
    if subsets == 1:
        return [np.arange(count)]
    return [np.sort(part) for part in np.array_split(rng.random_order(seed, count), subsets)]


def _engine(backend: str, threads: int | None, progress: bool) -> Callable:
    if backend not in BACKENDS:
        raise InputError(f"backend: expected one of {', '.join(BACKENDS)}; found {backend!r}")
    if backend == "reference":
        return oracle.pair_rows
    if runs_on_gpu(backend):
        return partial(gpu.pair_rows, progress=progress)
    return partial(_pair_rows_on_cpu, threads=threads, progress=progress)


def _pair_rows_on_cpu(*rows: np.ndarray, progress: bool, **options: Any) -> np.ndarray:
    from pairflow.pairing.cpu import engine as cpu

    with announced_compilation(_COMPILING, quiet=not progress):
        return cpu.pair_rows(*rows, progress=progress, **options)


def runs_on_gpu(backend: str) -> bool:
    """Whether `pair` uses the GPU for this backend; with "gpu" it may raise that something is missing."""
    return backend == "gpu" or (backend == "auto" and gpu.missing() is None)


def _row_range(rows: tuple[int, int] | None, count: int) -> tuple[int, int]:
    if rows is None:
        return 0, count
    try:
        first, last = map(operator.index, rows)
    except (TypeError, ValueError):
        raise InputError(f"rows: expected two integers (first, last), found {rows!r}") from None
    if not 0 <= first < last <= count:
        raise InputError(f"rows: expected 0 <= first < last <= {count}, found {first} and {last}")
    return first, last


def _integer(name: str, value: Any, low: int, high: int) -> int:
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or not low <= number <= high:
        raise InputError(f"{name}: expected an integer in {low}..{high}, found {value!r}")
    return number
