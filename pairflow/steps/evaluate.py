"""Measures samples, and compares them with real data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairflow.artifacts import Provenance
from pairflow.config import Settings
from pairflow.kinds.kind import Kind
from pairflow.metrics.measured import Machine
from pairflow.steps.command import by_kind, step
from pairflow.steps.options import bundle, evaluation, existing, on_device, out, together


def _evaluate(kind: Kind) -> Callable:
    outputs = [("--out", "metrics"), *((f"--{name}", name) for name in kind.measured if name != "metrics")]
    written = (out(*names, help=kind.measured[names[1]]) for names in outputs)

    @existing("--samples", help="Samples (Parquet).")
    @bundle("real", kind.real)
    @evaluation
    @together(*written)
    @on_device
    def run(settings: Settings, samples: Path, real: Any, evaluation, device, threads, quiet, **files: Path):
        provenance = Provenance()
        measured = kind.measure(settings, samples, real, Machine(device, threads, not quiet, provenance))
        measured.write(files, settings, evaluation, provenance)

    run.__doc__ = kind.measure.__doc__
    return step(kind.comparison)(run)


main = by_kind(_evaluate, "Measure samples, trial by trial, and compare them with real data.")

if __name__ == "__main__":
    main()
