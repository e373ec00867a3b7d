"""The exact CPU engine of Algorithm 1: bit for bit the oracle, at billions of keys per second and thread.

Why it is fast:

- A position whose random number is not below the step's rate stays, whatever its neighbours are. Only the few
  others are looked at (`candidates`), and only until it is certain whether they leave.
- For every occurring (position, symbol) the index (`bitmaps`) has the set of keys that hold it, one bit per
  key, without its empty blocks. Columns that never vary are left out.
- Every key's match count is kept in vertical bit planes (`counters`). A jump adds one row of the index and
  takes one away; nothing is compared again. A query starts from the planes of the one before it.
- Levels are split off from the nearest down, eight at a time. How many keys of a level agree at a position is
  counted in the cheaper way (`agreement`): by the common bits of a row and the level, 512 keys at a time, or
  key by key.
- All of it is plain LLVM on 512-bit values (`block`): AVX-512 where there is one, any other machine as well.

Memory beyond `keys`: about 12 + P/4 bytes per key and thread, P = bit_length(N), and 4 N bytes per level and
thread. The rule keeps at most N + 1 levels, in practice dozens.
"""

import threading

import numpy as np

from pairflow.pairing import rule
from pairflow.pairing.cpu.keys import prepare, sorted_rows
from pairflow.pairing.cpu.trajectory import walk
from pairflow.pairing.cpu.workspace import workspace
from pairflow.runtime.threads import run_blocks

_BLOCK = 1 << 34  # comparisons per task, a fraction of a second: Ctrl-C waits for one task at most
_STEP = 1 << 18  # comparisons that take as long as what a step does besides


def pair_rows(
    data: np.ndarray,
    queries: np.ndarray,
    row_numbers: np.ndarray,
    *,
    vocabulary_size: int,
    steps: int,
    seed: int,
    threads: int | None = None,
    progress: bool = False,
    jumps: np.ndarray | None = None,
) -> np.ndarray:
    """`oracle.pair_rows`, with the same arguments and the same bytes.

    The result does not depend on the number of `threads` (None: as many as the process may use). `progress`
    shows a bar. To `jumps` (T,) int64 are added the numbers of positions of all `queries` that jump in each
    step: entry s - 1 belongs to t = s/T.
    """
    dtype = np.min_scalar_type(vocabulary_size - 1)
    keys = prepare(data.astype(dtype, copy=False), vocabulary_size)
    order = sorted_rows(queries.astype(dtype))  # so that a query has much in common with the one before it
    states = queries[order].astype(dtype)
    numbers = np.asarray(row_numbers, dtype=np.uint64)[order]
    rates = rule.step_rates(steps, vocabulary_size)
    tables = rule.level_tables(steps, data.shape[1], vocabulary_size)
    margin = rule.margin(len(data))

    adding = threading.Lock()

    def pair_block(rows: slice) -> None:
        work = workspace(keys, steps)
        walk(keys, states[rows], numbers[rows], rates, tables, margin, np.uint64(seed), vocabulary_size, work)
        if jumps is not None:
            with adding:
                np.add(jumps, work.jumps, out=jumps)

    size = max(1, _BLOCK // ((data.size + _STEP) * steps))
    run_blocks(pair_block, len(states), size, threads=threads, progress=progress, name="pairing")
    sources = np.empty_like(queries)
    sources[order] = states
    return sources
