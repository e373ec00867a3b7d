"""Measures the molecules of any program as if they were samples, compared with a library."""

from pathlib import Path

import click

from pairflow.artifacts import Provenance
from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import LibraryRules
from pairflow.kinds.molecules.settings.data_sets import DATA_SETS
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, quiet, threads


@step(LibraryRules)
@click.argument("molecules", type=click.Path(path_type=Path))
@existing("--reference", required=False, help="The library: any file of molecules that `pairflow new` reads.")
@click.option(
    "--standard",
    type=click.Choice([*DATA_SETS]),
    help="Instead of --reference: count as publications on this data set do. Each row is one attempt, and "
    "the Fréchet ChemNet Distance is to the test molecules of the data set.",
)
@out(
    "--out",
    required=False,
    help="Output file with a line for each molecule (.csv, .xlsx, .parquet, or .html for a page to look "
    "through). It says whether the molecule is valid, known and plausible, with its properties, alerts "
    "and nearest neighbour.",
)
@threads
@quiet
def main(settings: LibraryRules, molecules: Path, reference, standard, out: Path | None, threads, quiet):
    """Measure the molecules in the file MOLECULES, and compare them with a library; no model is needed.

    It prints how many are valid, different, novel and plausible, and how similar they are to the library. Any
    program may have made these molecules. Both files are standardised as `pairflow new` does it; give the
    options that you gave to `new`. A molecule that the library has with other charges, as in a salt, is not
    novel.

    \b
      pairflow metrics samples.smi --reference my_library.smi --out samples.csv
      pairflow metrics samples.smi --standard zinc250k
    """
    from pairflow.kinds.molecules.measures.standard import Standard
    from pairflow.kinds.molecules.on_demand import against_library
    from pairflow.runtime.threads import available_cpus

    if (standard is None) == (reference is None) or (standard and out):
        raise InputError("expected --reference FILE, perhaps with --out, or only --standard")
    provenance = Provenance()
    work = threads or available_cpus(), not quiet
    if standard:
        click.echo(Standard.read(standard, *work).report(molecules, *work))
        return
    measured = against_library.measure(molecules, reference, settings, out, *work)
    click.echo(measured.summary)
    if out:
        measured.write(out)
        provenance.write(out)


if __name__ == "__main__":
    main()
