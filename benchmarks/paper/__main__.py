"""Finished experiments and the paper's printed tables to results/paper/.

snakemake --cores 1 results/paper/report.html
python -m benchmarks.paper --help
"""

from pathlib import Path

import click

from benchmarks.paper.inputs import read_experiments
from benchmarks.paper.page import PaperPage, render
from benchmarks.paper.settings import PaperSettings, find_finished
from pairflow.artifacts import Metadata, Provenance, atomic, replacing, require_apart, write_table
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, out_folder


@step(PaperSettings)
@existing(
    "--results",
    help="Folder that holds the experiments' folders. Those without a metrics.parquet are not finished.",
)
@out_folder("--tables", "Folder for LaTeX and CSV files.")
@out("--values", help="All printed and measured values, Parquet.")
@out("--out", help="Output file for the report page (HTML).")
def main(settings: PaperSettings, results: Path, tables: Path, values: Path, out: Path):
    """Compare finished experiments with the paper's tables."""
    provenance = Provenance()
    require_apart({"--values": values, "--out": out}, find_finished(results, settings.experiments).values())
    runs, pictures, left_out = read_experiments(results, settings.experiments)
    for line in left_out:
        click.echo(f"benchmarks.paper: left out: {line}", err=True)
    page = PaperPage(settings.experiments, runs, left_out, pictures)
    html = render(page)
    with atomic(values, out) as [new_values, new_page], replacing(tables) as new_tables:
        for files in page.files.values():
            for name, text in files.items():
                (new_tables / name).write_text(text, encoding="utf-8")
        write_table(new_values, page.values, Metadata(kind="paper values"))
        new_page.write_text(html, encoding="utf-8")
    provenance.write(out)


main.name = "paper"  # as its messages call it

if __name__ == "__main__":
    main()
