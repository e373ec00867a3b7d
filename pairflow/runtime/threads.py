"""Runs work on blocks of rows in threads, with a progress bar. The work should release Python's GIL."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from pairflow.runtime.cgroups import read_limits
from pairflow.runtime.progress import bar

SPINS = "1000"  # so often threads of OpenMP look whether they still have to wait, before they sleep
SAID: set[str] = set()  # notes, each of which is printed once


def run_blocks(
    work: Callable[[slice], None], rows: int, block: int, *, threads: int | None, progress: bool, name: str
) -> None:
    """Call `work(slice)` for slices of `block` rows that cover all `rows`, on `threads` threads.

    None means a thread per CPU, which is also the most (`useful_threads`). An exception, such as Ctrl-C,
    cancels the blocks that have not begun. `name` is written before the progress bar.
    """
    threads = useful_threads(threads)
    slices = (slice(start, min(start + block, rows)) for start in range(0, rows, block))
    waiting: dict[Future, int] = {}  # the rows of each block: only a few of perhaps millions are submitted
    pool = ThreadPoolExecutor(threads)
    try:
        with bar(total=rows, desc=name, unit="row", quiet=not progress) as rows_bar:
            while True:
                # Two blocks per thread, so that no thread waits for the loop.
                for part in islice(slices, 2 * threads - len(waiting)):
                    waiting[pool.submit(work, part)] = part.stop - part.start
                if not waiting:
                    break
                for task in wait(waiting, return_when=FIRST_COMPLETED).done:
                    task.result()
                    rows_bar.update(waiting.pop(task))
    finally:
        pool.shutdown(cancel_futures=True)


def spin_briefly() -> None:
    """Let OpenMP's threads sleep soon when they wait. By default they look for work 300,000 times, on cores
    that other programs need. OpenMP reads this setting when torch is loaded; a user's own setting stays."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


def granted_threads() -> int:
    """Return the number of threads: OMP_NUM_THREADS, which Snakemake sets per job, or else all CPUs."""
    granted = os.environ.get("OMP_NUM_THREADS", "")
    return useful_threads(int(granted) if granted.isdecimal() else None)


def useful_threads(asked: int | None) -> int:
    """Return the number of threads to use: `asked`, but at most one per CPU of this process.

    None, and 0, mean one per CPU. More would wait for one another. A line on stderr says if it is less than
    asked for.
    """
    cpus = available_cpus()
    if asked and asked > cpus:
        fewer = f"{cpus} in place of {asked}, because this process may use {cpus} CPU{'s' * (cpus > 1)}"
        say_once(f"threads: {fewer}")
    return min(asked or cpus, cpus)


def say_once(note: str) -> None:
    """Print a note on stderr, unless this process has printed it."""
    if note not in SAID:
        print(f"pairflow: note: {note}", file=sys.stderr, flush=True)
        SAID.add(note)


def all_cpus() -> int:
    """Return the number of CPUs that this process may run on, as Snakemake's `--cores all` counts them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_cpus() -> int:
    """Return how many CPUs this process may use: all on which it may run, or fewer by the quota of its
    container (rounded down, at least 1)."""
    limits = read_limits("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    return max(1, min([all_cpus(), *(quota // period for quota, period in limits if quota > 0)]))
