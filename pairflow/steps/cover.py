"""Token rows to the coverage table: how much of the data the closed-form forward velocity reaches."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import (
    Metadata,
    Provenance,
    as_metrics,
    atomic,
    digest,
    read_table,
    token_array,
    write_table,
)
from pairflow.config import CoverSettings
from pairflow.runtime.resume import Blocks, folder_of, remove
from pairflow.steps.command import existing, out, quiet, resumable, step, threads

BLOCK = 4 * 10**11  # token comparisons that are saved or lost together: about a minute on two cores


@step(CoverSettings)
@existing("--tokens", help="Token rows, Parquet.")
@out("--out", help="Metric rows, Parquet: unique_reached, coverage, coverage_predicted.")
@resumable
@threads
@quiet
def main(settings: CoverSettings, tokens: Path, out: Path, resume, save_every, threads, quiet):
    """Draw as many samples as data points along the forward velocity; count the data points reached.

    Stopped, it goes on where it was, to the same bits.
    """
    from pairflow.pairing import forward

    provenance = Provenance()
    table, metadata = read_table(tokens, "tokens")
    rows = token_array(table["tokens"])
    rules = {"vocabulary_size": metadata.vocabulary_size, "steps": settings.steps, "seed": settings.seed}
    parameters, inputs = settings.model_dump(mode="json"), {"tokens": digest(tokens)}
    made = Metadata(kind="metrics", parameters=parameters, inputs=inputs)
    states = folder_of(resume or out.parent / f".{out.name}.resume", "forward", made.__dict__)
    size = max(1, BLOCK // (rows.size * settings.steps))
    ranges = [(first, min(size, len(rows) - first)) for first in range(0, len(rows), size)]

    def block(numbers: tuple[int, int]) -> np.ndarray:
        first, count = numbers
        return forward.sample(rows, count, **rules, threads=threads, progress=not quiet, first=first)

    samples = np.concatenate(Blocks(ranges, states, save_every, provenance).make(block))
    found = forward.coverage(samples, rows)
    frame = as_metrics(
        pd.DataFrame({"metric": found.keys(), "value": found.values()}),
        method="forward",
        seed=settings.seed,
        evaluation="coverage",
        samples=len(rows),
    )
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    provenance.write(out)
    remove(states)


if __name__ == "__main__":
    main()
