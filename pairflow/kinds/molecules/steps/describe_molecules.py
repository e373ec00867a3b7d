"""Training molecules to the descriptors that samples are compared with."""

from pathlib import Path

from pairflow.artifacts import Provenance, atomic
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step()
@existing("--smiles", help="Canonical SMILES of the data set (Parquet).")
@out("--out", help="Output file for fingerprints, scaffolds and properties (Parquet).")
@threads
@quiet
def main(smiles: Path, out: Path, threads, quiet):
    """Compute fingerprint and scaffold of all training molecules, and properties of up to 20,000 of them."""
    from pairflow.kinds.molecules import descriptors, training_molecules
    from pairflow.runtime.threads import available_cpus

    provenance = Provenance()
    known = training_molecules.DatasetMolecules.read(smiles)
    chosen = training_molecules.some(len(known.trained), training_molecules.PROPERTY_ROWS)
    processes = threads or available_cpus()
    fingerprints, scaffolds = descriptors.structures(known.trained, processes, not quiet)
    properties = descriptors.properties([known.trained[row] for row in chosen], processes, not quiet)
    with atomic(out) as [temporary]:
        training_molecules.write_training(temporary, known, fingerprints, scaffolds, properties)
    provenance.write(out)


if __name__ == "__main__":
    main()
