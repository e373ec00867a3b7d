"""Training molecules to what is usual in them, by which samples are plausible or not."""

from dataclasses import replace
from pathlib import Path

from pairflow.artifacts import Provenance, save_table
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step()
@existing("--smiles", help="Canonical SMILES of the data set (Parquet).")
@out("--out", help="Output file for ring systems, atoms and limits (Parquet).")
@threads
@quiet
def main(smiles: Path, out: Path, threads, quiet):
    """Find what is usual in the training molecules, for `chemistry: {plausible: true}`.

    It counts the molecules that have a ring system, or an atom with the same bonds and neighbours. For each
    measure of plausible molecules it finds the limit that 95 % of up to 2,000 molecules keep.
    """
    from pairflow.kinds.molecules import plausible
    from pairflow.kinds.molecules.training_molecules import DatasetMolecules
    from pairflow.runtime.threads import available_cpus

    provenance = Provenance()
    known = DatasetMolecules.read(smiles)
    norms = plausible.find_norms(known.trained, threads or available_cpus(), not quiet)
    metadata = replace(known.describes(plausible.KIND), data=known.metadata.data)  # as a model's
    save_table(out, norms.table(), metadata, provenance)


if __name__ == "__main__":
    main()
