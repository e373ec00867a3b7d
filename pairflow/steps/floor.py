"""Measures real data as if they were samples: the values that perfect samples would have."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import RealDraws
from pairflow.kinds.kind import AnyKind
from pairflow.metrics.measured import Machine
from pairflow.steps.command import ByKind, step
from pairflow.steps.options import bundle, evaluation, on_device, out


def _floor(kind: AnyKind) -> click.Command | None:
    if (floor := kind.floor) is None:
        return None

    @bundle("real", floor.files)
    @evaluation
    @out(
        "--out",
        help="Output file for the metric rows (Parquet), in which real data are the method 'data'.",
    )
    @on_device
    def run(settings: RealDraws, real: tuple, evaluation: str, out: Path, device, threads, quiet):
        provenance = Provenance()
        measured = floor.measure(settings, real, Machine(device, threads, not quiet, provenance))
        measured.write({"metrics": out}, settings, evaluation, provenance)

    run.__doc__ = floor.measure.__doc__
    return step(floor.settings)(run)


main = ByKind(
    _floor, "Compute reference values: the metrics of samples, measured on as many rows of real data."
)

if __name__ == "__main__":
    main()
