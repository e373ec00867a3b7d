"""Pairs to metric rows: how far apart they are, how they came to be, and whether x0 looks like the source."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from pairflow import rng
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
from pairflow.metrics.coupling import diagnose
from pairflow.steps.command import existing, out, step

JUMP_ROWS = 1000  # whose trajectories are walked again, to count their jumps


@step()
@existing("--pairs", help="Pairs, Parquet.")
@click.option("--method", required=True, help="Name of the coupling in the rows.")
@out("--out", help="Metric rows, Parquet.")
def main(pairs: Path, method: str, out: Path):
    """Describe a coupling: Hamming distances of x0 and x1, symbol frequencies of x0, jumps per step."""
    provenance = Provenance()
    table, metadata = read_table(pairs, "pairs")
    x1 = token_array(table["x1"])
    found = diagnose(token_array(table["x0"]), x1, metadata.vocabulary_size)
    if metadata.parameters["coupling"] == "pairflow":
        found |= _jumps(x1, metadata)
    rows = pd.DataFrame({"metric": found.keys(), "value": found.values()})
    seed = metadata.parameters["seed"]
    frame = as_metrics(rows, method=method, seed=seed, evaluation="coupling", samples=len(table))
    made = Metadata(kind="metrics", parameters=metadata.parameters, inputs={"pairs": digest(pairs)})
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    provenance.write(out)


def _jumps(x1: np.ndarray, metadata: Metadata) -> dict[str, float]:
    """`jumps_<s>` for s = 1..T: positions that jump per row in the step from t = s/T, in `jump_rows` rows."""
    from pairflow.pairing.pair import jumps_per_step

    parameters = metadata.parameters
    rows = rng.random_order(parameters["seed"], len(x1))[:JUMP_ROWS]
    rule = {key: parameters[key] for key in ("steps", "subsets", "seed")}
    jumps = jumps_per_step(x1, rows, vocabulary_size=metadata.vocabulary_size, **rule)
    per_step = {f"jumps_{step}": float(value) for step, value in enumerate(jumps, start=1)}
    return {"jump_rows": len(rows), **per_step}


if __name__ == "__main__":
    main()
