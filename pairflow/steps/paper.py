"""Finished experiments and the paper's printed tables to results/paper/."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pairflow.artifacts import Metadata, Provenance, atomic, atomic_folder, write_table
from pairflow.config import Experiment, PaperSettings
from pairflow.errors import InputError
from pairflow.plan import paths
from pairflow.report.results import results_of
from pairflow.steps.command import out, step

if TYPE_CHECKING:
    from pairflow.report.paper import Run


@step(PaperSettings)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of the experiments' folders: those without a metrics.parquet are not finished.",
)
@click.option(
    "--tables",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for LaTeX and CSV files. It is replaced.",
)
@out("--values", help="All printed and measured values, Parquet.")
@out("--out", help="The page, HTML.")
def main(settings: PaperSettings, results: Path, tables: Path, values: Path, out: Path):
    """Set the paper's tables beside every finished experiment on its data."""
    from pairflow.report.paper import Page, render

    provenance = Provenance()
    runs, left_out = {}, []
    for name, path in paths.finished(results, settings.experiments).items():
        try:
            runs[name] = _run(path, settings.experiments[name])
        except InputError as error:
            left_out.append(str(error))
            click.echo(f"pairflow paper: left out: {error}", err=True)
    page = Page(settings.experiments, runs, left_out)
    html = render(page)
    with atomic(values, out) as [new_values, new_page], atomic_folder(tables) as new_tables:
        for each in page.files.values():
            for name, text in each.items():
                (new_tables / name).write_text(text, encoding="utf-8")
        write_table(new_values, page.values, Metadata(kind="paper values"))
        new_page.write_text(html, encoding="utf-8")
    provenance.write(out)


def _run(path: Path, experiment: Experiment) -> "Run":
    """What an experiment has; InputError unless its files are those that the configuration would make."""
    from pairflow.report.paper import Run

    root = path.parent
    found = results_of(root)
    for key in Experiment.model_fields:
        if key != "description" and getattr(found.experiment, key) != getattr(experiment, key):
            raise InputError(
                f"{path}: made with another configuration, which differs in '{key}': run it again with "
                f"snakemake {root.as_posix()}/report.html"
            )
    return Run(
        name=root.name,
        settings=experiment.model_dump(mode="json"),
        metrics=found.metrics,
        timings=found.timings,
        provenance=found.provenance,
    )


if __name__ == "__main__":
    main()
