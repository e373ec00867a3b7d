"""Compares finished experiments, or the methods of one, on a page and in a table."""

from pathlib import Path

import click

from pairflow.artifacts import Metadata, Provenance, atomic, digest, write_table
from pairflow.errors import InputError
from pairflow.steps.command import step
from pairflow.steps.options import out


@step()
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    metavar="METHOD",
    help="The baseline method, when a single folder is given.  [default: udlm, else the first method]",
)
@out("--out", help="The page, .html. Its numbers are written next to it, as .parquet.")
def main(folders: tuple[Path, ...], baseline: str | None, out: Path):
    """Compare finished experiments, or the methods of one.

    Each FOLDER is a results/<experiment> with a finished report. Every method is compared with the same
    method in the first folder. With a single folder, its methods are compared with the baseline method:

    \b
      pairflow compare results/demo results/demo_wide --out comparison.html
      pairflow compare results/qm9 --baseline udlm+dcd --out methods.html

    Means, intervals and tests are over training seeds (`seeds: [0, 1, 2]` in the configuration). With only
    one seed they are over its sampling trials, and the page says so. Values with different numbers of
    samples, references or extractors are shown separately. The verdict is also printed.
    """
    from pairflow.report.compare import inputs
    from pairflow.report.compare.numbers import tabulate
    from pairflow.report.compare.page import render
    from pairflow.report.compare.sections import compare_runs
    from pairflow.report.compare.verdict import write_verdict
    from pairflow.report.results import METRICS

    provenance = Provenance()
    numbers = inputs.place_numbers(out, folders)
    runs = inputs.read_folders(folders)
    inputs.require_comparable(baseline, runs)
    compared = compare_runs(runs, baseline)
    if not compared.grids:
        raise InputError(f"{folders[0] / METRICS}: has no value of any evaluation")
    metadata = Metadata(
        kind="comparison",
        parameters={"experiments": [run.name for run in runs], "baseline": compared.baseline},
        inputs={
            f"{run.name}/{METRICS}": digest(folder / METRICS)
            for run, folder in zip(runs, folders, strict=True)
        },
    )
    page = render(compared, numbers.name)
    with atomic(out, numbers) as [new_page, new_numbers]:
        new_page.write_text(page, encoding="utf-8")
        write_table(new_numbers, tabulate(compared.grids), metadata)
    provenance.write(out, numbers)
    click.echo("\n".join(write_verdict(compared)))


if __name__ == "__main__":
    main()
