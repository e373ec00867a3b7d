"""Measures real data as if they were samples: the values that perfect samples would have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairflow.artifacts import Provenance
from pairflow.config import RealDraws
from pairflow.kinds.kind import Kind
from pairflow.metrics.measured import Machine
from pairflow.steps.command import by_kind, step
from pairflow.steps.options import bundle, evaluation, on_device, out


def _floor(kind: Kind) -> Callable | None:
    if kind.floor is None:
        return None

    @bundle("real", kind.floor_reads or kind.real)
    @evaluation
    @out(
        "--out",
        help="Output file for the metric rows (Parquet), in which real data are the method 'data'.",
    )
    @on_device
    def run(settings: RealDraws, real: Any, evaluation: str, out: Path, device, threads, quiet):
        provenance = Provenance()
        measured = kind.measure_floor(settings, real, Machine(device, threads, not quiet, provenance))
        measured.write({"metrics": out}, settings, evaluation, provenance)

    run.__doc__ = kind.measure_floor.__doc__
    return step(kind.floor)(run)


main = by_kind(
    _floor, "Compute reference values: the metrics of samples, measured on as many rows of real data."
)

if __name__ == "__main__":
    main()
