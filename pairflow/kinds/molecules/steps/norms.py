"""Finds what is usual in the training molecules, to tell which samples are plausible."""

from dataclasses import replace
from pathlib import Path

from pairflow.artifacts import Provenance, save_table
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step()
@existing("--smiles", help="Canonical SMILES of the data set (Parquet).")
@out("--out", help="Output file for ring systems, atoms, alerts and limits (Parquet).")
@threads
@quiet
def main(smiles: Path, out: Path, threads, quiet):
    """Find what is usual in the training molecules, for `chemistry: {plausible: true}`.

    Among up to 250,000 random molecules it counts how many have each ring system, and each atom with its
    bonds and neighbours. Among up to 10,000 of these it counts how many have each alert. For each measure of
    plausible molecules it finds the limit that 95 % of up to 2,000 molecules do not exceed.
    """
    from pairflow.kinds.molecules.measures import plausible
    from pairflow.kinds.molecules.measures.training_molecules import DatasetMolecules
    from pairflow.runtime.threads import available_cpus

    provenance = Provenance()
    known = DatasetMolecules.read(smiles)
    norms = plausible.find_norms(known.described, threads or available_cpus(), not quiet)
    metadata = replace(known.describes(plausible.KIND), data=known.metadata.data)  # for `require_same_data`
    save_table(out, norms.table(), metadata, provenance)


if __name__ == "__main__":
    main()
