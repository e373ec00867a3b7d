"""Measures the share of data rows that the closed-form forward flow reaches from noise."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.arrays import checked_tokens
from pairflow.artifacts import Metadata, Provenance, as_metrics, digest, read_table, token_array
from pairflow.config import CoverSettings
from pairflow.runtime.resume import BlockKey, ResumableTable, ResumeOptions, split_rows
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, resumable, threads

BLOCK = 4 * 10**11  # token comparisons that one saved block needs: about a minute on two cores


@step(CoverSettings)
@existing("--tokens", help="Token rows (Parquet).")
@out("--out", help="Output file for the metric rows (Parquet): unique_reached, coverage, coverage_predicted.")
@resumable
@threads
@quiet
def main(settings: CoverSettings, tokens: Path, out: Path, resume: ResumeOptions, threads, quiet):
    """Measure the share of the data that is reached from noise along the exact velocity, without a network.

    It draws as many samples as there are data rows, and counts the different data rows among them. An
    interrupted run resumes, and gives the same bytes.
    """
    from pairflow.pairing import forward

    provenance = Provenance()
    tokens_table, metadata = read_table(tokens, "tokens")
    rows = checked_tokens(token_array(tokens_table["tokens"]), metadata.dimensions[1])
    parameters, inputs = settings.model_dump(mode="json"), {"tokens": digest(tokens)}
    written = Metadata(kind="metrics", parameters=parameters, inputs=inputs)
    table = ResumableTable(out, written, "forward", resume, provenance)
    rule = {"vocabulary_size": metadata.dimensions[1], "steps": settings.steps, "seed": settings.seed}

    with provenance.uncounted():
        forward.sample(rows[:2], 1, **rule, progress=False)  # compiles

    def draw(block: BlockKey) -> np.ndarray:
        first, count = block
        return forward.sample(rows, count, **rule, first=first, threads=threads, progress=not quiet)

    blocks = split_rows(len(rows), max(1, BLOCK // (rows.size * settings.steps)))
    values = forward.coverage(np.concatenate(table.make(blocks, draw)), rows)
    metrics = pd.DataFrame({"metric": values.keys(), "value": values.values()})
    shared = {"method": "forward", "seed": settings.seed, "evaluation": "coverage", "samples": len(rows)}
    table.write(as_metrics(metrics, **shared))


if __name__ == "__main__":
    main()
