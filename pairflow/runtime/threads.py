"""Blocks of rows on plain threads: kernels release the GIL, a bar shows the time left, Ctrl-C stops."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from pairflow.runtime.progress import bar


def run_blocks(
    work: Callable[[slice], None], rows: int, block: int, *, threads: int | None, progress: bool, name: str
) -> None:
    """Call `work(slice)` on every block of `block` of the `rows`, on `threads` threads (None: all CPUs).

    An exception, such as Ctrl-C, cancels the blocks that have not begun.
    """
    pool = ThreadPoolExecutor(threads or available_cpus())
    try:
        slices = [slice(start, min(start + block, rows)) for start in range(0, rows, block)]
        tasks = {pool.submit(work, part): part.stop - part.start for part in slices}
        with bar(total=rows, desc=name, unit="row", quiet=not progress) as rows_bar:
            for task in as_completed(tasks):
                task.result()
                rows_bar.update(tasks[task])
    finally:
        pool.shutdown(cancel_futures=True)


def available_cpus() -> int:
    """The number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
