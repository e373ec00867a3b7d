"""Maps a function over chunks of work in several processes, with only a few chunks in memory at once."""

import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

from pairflow.runtime.signals import end_with_parent

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
_WAITING = 3  # chunks per process that are read ahead


def map_chunks(work: Callable[[Chunk], Result], chunks: Iterable[Chunk], processes: int) -> Iterator[Result]:
    """Yield `work(chunk)` for each chunk, in order, from several processes; with one, from the current
    process.

    Functions, chunks and results travel between processes, so that they must be picklable. The processes
    start with the first chunk, which takes about two seconds. They do not import the main module, so that a
    user's script needs no guard against running again in each of them.
    """
    if processes < 2:
        yield from map(work, chunks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)
    waiting: deque[Future[Result]] = deque()
    try:
        for chunk in chunks:
            with _without_main():  # a process may start here
                waiting.append(pool.submit(work, chunk))
            if len(waiting) > _WAITING * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_main() -> Iterator[None]:
    """Replace the main module by an empty one during the block."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
