"""Measures pairs of noise x0 and data x1: their distance and the symbols of x0."""

from pathlib import Path

import click
import pandas as pd

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
from pairflow.config import BASES
from pairflow.config.training import FREQUENCIES
from pairflow.metrics.coupling import diagnose, diagnose_points
from pairflow.pairing.prior import frequencies
from pairflow.pairing.transport import Balance
from pairflow.steps.command import step
from pairflow.steps.options import existing, out


@step()
@existing("--pairs", help="Pairs (Parquet).")
@click.option("--method", required=True, help="Name of the coupling in the metric rows.")
@out("--out", help="Output file for the metric rows (Parquet).")
def main(pairs: Path, method: str, out: Path):
    """Describe a coupling by the Hamming distances between source states x0 and data points x1, and by the
    symbol frequencies of x0. A coupling of vectors has squared distances instead."""
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
    measured = (*ADOPTED, *Balance._fields)
    values |= {name: metadata.parameters[name] for name in measured if name in metadata.parameters}
    rows = pd.DataFrame({"metric": values.keys(), "value": values.values()})
    seed = metadata.parameters.get("seed", 0)
    frame = as_metrics(rows, method=method, seed=seed, evaluation="coupling", samples=len(table))
    written = Metadata(kind="metrics", parameters=metadata.parameters, inputs={"pairs": digest(pairs)})
    save_table(out, frame, written, provenance)


if __name__ == "__main__":
    main()
