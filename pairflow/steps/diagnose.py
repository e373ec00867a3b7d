"""Measures pairs of noise x0 and data x1: their distance, the symbols of x0, and the jumps between them."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow import rng
from pairflow.artifacts import (
    ADOPTED,
    Metadata,
    Provenance,
    as_metrics,
    digest,
    read_table,
    save_table,
    token_array,
)
from pairflow.config import BASES, PairSettings, check
from pairflow.config.training import FREQUENCIES
from pairflow.metrics.coupling import diagnose, diagnose_points
from pairflow.pairing.pair import compile_for, jumps_per_step
from pairflow.pairing.prior import frequencies
from pairflow.pairing.transport import Balance
from pairflow.steps.command import step
from pairflow.steps.options import existing, out

JUMP_ROWS = 1000  # rows whose trajectories are computed again to count the jumps


@step()
@existing("--pairs", help="Pairs (Parquet).")
@click.option("--method", required=True, help="Name of the coupling in the metric rows.")
@out("--out", help="Output file for the metric rows (Parquet).")
def main(pairs: Path, method: str, out: Path):
    """Describe a coupling by the Hamming distances between source states x0 and data points x1, the
    symbol frequencies of x0 and the jumps per step, or a coupling of vectors by squared distances."""
    provenance = Provenance()
    table, metadata = read_table(pairs, "pairs", "vector pairs")
    x0, x1 = (token_array(table[name]) for name in ("x0", "x1"))
    base = BASES.get(metadata.parameters["coupling"]) if metadata.kind == "pairs" else None
    by_frequency = metadata.parameters.get("noise") == FREQUENCIES
    if metadata.kind == "vector pairs":
        ends = {name: table[name].to_numpy() for name in ("target", "moved") if name in table.column_names}
        values = diagnose_points(x0, x1, **ends)
    else:
        # The rows of a teacher's pairs are its samples, so that only their sources know the frequencies.
        pi = frequencies(x1 if base else x0, metadata.dimensions[1]) if by_frequency else None
        values = diagnose(x0, x1, metadata.dimensions[1], pi)
    if base and base.closed_form:
        settings = check(PairSettings, dict(metadata.parameters), str(pairs))
        with provenance.uncounted():
            compile_for(x1, vocabulary_size=metadata.dimensions[1], backend="cpu", noise=settings.noise)
        values |= _jumps(x1, metadata, settings)
    measured = (*ADOPTED, *Balance._fields)
    values |= {name: metadata.parameters[name] for name in measured if name in metadata.parameters}
    rows = pd.DataFrame({"metric": values.keys(), "value": values.values()})
    seed = metadata.parameters.get("seed", 0)
    frame = as_metrics(rows, method=method, seed=seed, evaluation="coupling", samples=len(table))
    written = Metadata(kind="metrics", parameters=metadata.parameters, inputs={"pairs": digest(pairs)})
    save_table(out, frame, written, provenance)


def _jumps(x1: np.ndarray, metadata: Metadata, settings: PairSettings) -> dict[str, float]:
    """Return the mean numbers of positions that jump in each step from t = s/T, as `jumps_<s>` for s =
    1..T."""
    rows = rng.random_order(settings.seed, len(x1))[:JUMP_ROWS]
    rule = settings.model_dump(include={"steps", "noise", "seed"}) | {
        "subsets": settings.count_subsets(len(x1))
    }
    jumps = jumps_per_step(x1, rows, vocabulary_size=metadata.dimensions[1], **rule)
    per_step = {f"jumps_{step}": float(value) for step, value in enumerate(jumps, start=1)}
    return {"jump_rows": len(rows), **per_step}


if __name__ == "__main__":
    main()
