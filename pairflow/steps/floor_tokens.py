"""Real token rows to metric rows: how far training rows and held-out rows are apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, save_table
from pairflow.config import RealDraws
from pairflow.kinds.tokens.measure import RealRows, compare_frequencies, compare_neighbours, compile_for
from pairflow.metrics.draws import draw_trials
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, out, real_tokens


@step(RealDraws)
@real_tokens
@evaluation
@out("--out", help="Output file for the metric rows of the method 'data' (Parquet).")
def main(settings: RealDraws, tokens: Path, validation: Path, evaluation: str, out: Path):
    """Compute the floor: the same metrics as for samples, but measured on real rows.

    Each trial draws training rows, whose n-gram frequencies are compared with those of all held-out rows.
    For the distance to the nearest training row, held-out rows take the place of samples.
    """
    provenance = Provenance()
    real = RealRows.read(tokens, validation)
    with provenance.uncounted():
        compile_for(real)
    shared = {"method": "data", "seed": settings.seed, "evaluation": evaluation}
    written = Metadata(
        kind="metrics",
        vocabulary=real.metadata.vocabulary,
        parameters=settings.model_dump(mode="json"),
        inputs=real.inputs,
    )
    rows = pd.DataFrame(_rows(real, settings))
    save_table(out, as_metrics(rows, **shared), written, provenance)


def _rows(real: RealRows, settings: RealDraws) -> Iterator[dict[str, Any]]:
    for split, rows, compare in (
        ("train", real.train, compare_frequencies),
        ("test", real.held_out, compare_neighbours),
    ):
        for trial, drawn in draw_trials(settings, split, np.arange(len(rows))):
            for row in compare(rows[drawn], real):
                yield {**row, "trial": trial, "samples": len(drawn)}


if __name__ == "__main__":
    main()
