"""Computes the descriptors of training molecules that samples are compared with."""

from pathlib import Path

from pairflow.artifacts import Provenance, save_table
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step()
@existing("--smiles", help="Canonical SMILES of the data set (Parquet).")
@out("--out", help="Output file for fingerprints, scaffolds and properties (Parquet).")
@threads
@quiet
def main(smiles: Path, out: Path, threads, quiet):
    """Compute fingerprint and scaffold of up to 250,000 training molecules, which are drawn at random, and
    properties of up to 20,000 of them."""
    from pairflow.kinds.molecules.measures import training_molecules
    from pairflow.runtime.threads import available_cpus

    provenance = Provenance()
    known = training_molecules.DatasetMolecules.read(smiles)
    described = training_molecules.describe_training(known, threads or available_cpus(), not quiet)
    save_table(out, *described, provenance)


if __name__ == "__main__":
    main()
