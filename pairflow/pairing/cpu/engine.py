"""The exact CPU engine of Algorithm 1: the oracle's results, at billions of keys per second and thread.

Why it is fast:

- A position whose random number is not below the step's rate stays, for any data. The few other positions are
  `candidates`, and they are counted only until it is certain whether they leave.
- For every (position, symbol) in the data, the `index` has the set of keys (data rows) with that symbol: as
  `bitmaps` without empty blocks if the sets are large, else as `lists`. Constant columns are left out.
- The match count of every key is updated, not recomputed (`matches`): in vertical bit planes for bitmaps
  (`planes`), as a number for lists. A change of a symbol adds one set and subtracts another. A query starts
  from the counts of the previous query.
- Levels are found from the nearest on. The keys of a level that agree at a position are counted in the
  cheaper of two ways: as the intersection of a set with the level, or key by key.
- For a query far from all other keys, one pass over the keys can prove that only its data row has weight
  (`certificate`). Its steps then need no counts.
- The code is plain LLVM on 512-bit values (`block`): fast with AVX-512, and correct on every machine.

In addition to the memory of `keys`, each thread takes per key: with bitmaps about 5 + P/4 bytes, where
P = bit_length(N), and 1 more if K = 2; with lists 8 bytes.
"""

import threading

import numpy as np

from pairflow.pairing import rule
from pairflow.pairing.cpu.keys import prepare, sorted_rows
from pairflow.pairing.cpu.trajectory import pair_queries
from pairflow.pairing.cpu.workspace import workspace
from pairflow.runtime.threads import run_blocks

_BLOCK = 1 << 34  # comparisons per task, a fraction of a second: Ctrl-C waits for one task at most
_STEP = 1 << 18  # comparisons that take as long as the fixed cost of a step


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
) -> np.ndarray:
    """Pair rows as `oracle.pair_rows` does: the same arguments give the same bytes.

    `data` (M, N) are all data rows, `queries` (B, N) those to pair, and `row_numbers` (B,) their numbers in
    the data set. Returns sources (B, N), which do not depend on the number of `threads` (None: all that the
    process may use). `progress` shows a bar.
    """
    dtype = np.min_scalar_type(vocabulary_size - 1)
    keys = prepare(data.astype(dtype, copy=False), vocabulary_size)
    order = sorted_rows(queries.astype(dtype))  # so that consecutive queries are similar
    states = queries[order].astype(dtype)
    numbers = np.asarray(row_numbers, dtype=np.uint64)[order]
    rates = rule.step_rates(steps, vocabulary_size)
    tables = rule.level_tables(steps, data.shape[1], vocabulary_size)
    margin = rule.margin(len(data))

    local = threading.local()

    def pair_block(rows: slice) -> None:
        # A thread keeps its workspace from block to block, so that a query starts from the previous counts.
        if not hasattr(local, "work"):
            local.work = workspace(keys)
        block = states[rows], numbers[rows]
        pair_queries(keys, *block, rates, tables, margin, np.uint64(seed), vocabulary_size, local.work)

    size = max(1, _BLOCK // ((data.size + _STEP) * steps))
    run_blocks(pair_block, len(states), size, threads=threads, progress=progress, name="pairing")
    sources = np.empty_like(queries)
    sources[order] = states
    return sources
