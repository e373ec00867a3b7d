"""Measures samples, and compares them with real data."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.config import Settings
from pairflow.kinds.kind import AnyKind
from pairflow.metrics.measured import Machine
from pairflow.steps.command import ByKind, step
from pairflow.steps.options import bundle, evaluation, existing, on_device, out, together


def _evaluate(kind: AnyKind) -> click.Command:
    reference = kind.reference
    outputs = [
        ("--out", "metrics"),
        *((f"--{name}", name) for name in reference.outputs if name != "metrics"),
    ]
    written = (out(*names, help=reference.outputs[names[1]]) for names in outputs)

    @existing("--samples", help="Samples (Parquet).")
    @bundle("real", reference.files)
    @evaluation
    @together(*written)
    @on_device
    def run(
        settings: Settings, samples: Path, real: tuple, evaluation, device, threads, quiet, **files: Path
    ):
        provenance = Provenance()
        measured = reference.measure(settings, samples, real, Machine(device, threads, not quiet, provenance))
        measured.write(files, settings, evaluation, provenance)

    run.__doc__ = reference.measure.__doc__
    return step(reference.settings)(run)


main = ByKind(_evaluate, "Measure samples, trial by trial, and compare them with real data.")

if __name__ == "__main__":
    main()
