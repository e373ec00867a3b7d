"""The exact CPU engine of Algorithm 1: bit for bit the oracle, at billions of keys per second and thread.

Why it is fast:

- A position whose random number is not below the step's rate stays, whatever its neighbours are. Only the few
  others are looked at (`candidates`), and only until it is certain whether they leave.
- For every occurring (position, symbol) the `index` has the set of keys that hold it. Where these sets are
  large they are `bitmaps`, one bit a key, without empty blocks; else they are `lists` of keys. Columns that
  never vary are left out.
- Every key's match count is kept (`matches`): with bitmaps in vertical bit planes (`planes`), with lists as a
  number. A jump adds one set and takes one away; nothing is compared again. A query starts from the counts of
  the one before it.
- Levels are split off from the nearest down. How many keys of a level agree at a position is counted in the
  cheaper of two ways: by the keys that a set and the level have in common, or key by key.
- A query far from all other keys looks at its own row only, once one pass over the keys has proven that no
  other counts (`certificate`).
- All of it is plain LLVM on 512-bit values (`block`): AVX-512 where there is one, any other machine as well.

Memory beyond `keys`, per key and thread: with bitmaps about 5 + P/4 bytes, P = bit_length(N), and 1 more
where K = 2; with lists 8.
"""

import threading

import numpy as np

from pairflow.pairing import rule
from pairflow.pairing.cpu.keys import prepare, sorted_rows
from pairflow.pairing.cpu.trajectory import walk
from pairflow.pairing.cpu.workspace import Workspace, workspace
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

    local = threading.local()
    works: list[Workspace] = []

    def pair_block(rows: slice) -> None:
        if not hasattr(local, "work"):
            local.work = workspace(keys, steps)
            works.append(local.work)
        own = states[rows], numbers[rows]
        walk(keys, *own, rates, tables, margin, np.uint64(seed), vocabulary_size, local.work)

    size = max(1, _BLOCK // ((data.size + _STEP) * steps))
    run_blocks(pair_block, len(states), size, threads=threads, progress=progress, name="pairing")
    if jumps is not None:
        jumps += np.sum([work.jumps for work in works], axis=0, dtype=np.int64)
    sources = np.empty_like(queries)
    sources[order] = states
    return sources
