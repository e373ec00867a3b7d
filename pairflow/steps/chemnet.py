"""Training molecules to the statistics of their ChemNet features."""

from pathlib import Path

from pairflow.artifacts import Stopwatch, atomic
from pairflow.steps._command import device, existing, out, quiet, step, threads


@step()
@existing("--smiles", help="Canonical SMILES of the data set, Parquet.")
@out("--out", help="Mean and covariance, Parquet: a row per feature.")
@device
@threads
@quiet
def main(smiles: Path, out: Path, device, threads, quiet):
    """Measure ChemNet's features, which FCD compares, on up to 10,000 training molecules."""
    from pairflow.metrics import chemnet
    from pairflow.metrics.images import Moments
    from pairflow.steps import _molecules
    from pairflow.steps._device import choose

    stopwatch = Stopwatch()
    known = _molecules.Known.read(smiles)
    chosen = _molecules.some(len(known.trained), _molecules.CHEMNET_ROWS)
    where = choose(device, threads)
    stopwatch.device = str(where)
    features = chemnet.features([known.trained[row] for row in chosen], str(where), not quiet)
    with atomic(out) as [temporary]:
        _molecules.write_chemnet(temporary, known, Moments.of(features))
    stopwatch.write(out)


if __name__ == "__main__":
    main()
