"""Computes the statistics of the training molecules' ChemNet features."""

from pathlib import Path

from pairflow.artifacts import Provenance, save_table
from pairflow.steps.command import step
from pairflow.steps.options import existing, on_device, out


@step()
@existing("--smiles", help="Canonical SMILES of the data set (Parquet).")
@out("--out", help="Output file for mean and covariance (Parquet): a row per feature.")
@on_device
def main(smiles: Path, out: Path, device, threads, quiet):
    """Compute the statistics that the Fréchet ChemNet Distance (FCD) compares: mean and covariance of
    ChemNet's features of up to 10,000 training molecules."""
    import pyarrow as pa

    from pairflow.kinds.molecules.measures import training_molecules
    from pairflow.metrics.frechet import Moments
    from pairflow.runtime.device import choose

    provenance = Provenance()
    known = training_molecules.DatasetMolecules.read(smiles)
    device = choose(device, threads, provenance)
    chosen = training_molecules.draw(known.trained, training_molecules.CHEMNET_ROWS)
    features = training_molecules.chemnet_features(chosen, str(device), not quiet)
    moments = Moments.from_features(features)
    metadata = known.describes("ChemNet statistics", count=moments.count)
    save_table(out, pa.table(moments.columns()), metadata, provenance)


if __name__ == "__main__":
    main()
