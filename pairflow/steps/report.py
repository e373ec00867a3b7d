"""Writes metrics.parquet, timings.parquet, report.html and figures/ of an experiment."""

from pathlib import Path

from pairflow.artifacts import Metadata, Provenance, atomic, digest, replacing, require_apart, write_table
from pairflow.config import Experiment
from pairflow.kinds import page_of
from pairflow.plan import lineage
from pairflow.plan.jobs import jobs
from pairflow.steps.command import step
from pairflow.steps.options import existing, out, out_folder


@step(Experiment)
@existing("--root", help="The experiment's folder, results/<experiment>.")
@out("--metrics", help="All metric rows, Parquet.")
@out("--timings", help="Seconds, memory and device of every job, Parquet.")
@out_folder("--figures", "Folder for the page's figures: charts as SVG and PDF, images as PNG.")
@out("--out", help="Output file for the report page (HTML).")
def main(settings: Experiment, root: Path, metrics: Path, timings: Path, figures: Path, out: Path):
    """Gather an experiment's metric rows and timings over its seeds, and write its page and its figures.

    A figure's file is named after what it shows: main-valid.pdf is the metric `valid` of the evaluation
    `main`.
    """
    from pairflow.report.experiment import files, gather
    from pairflow.report.experiment.page import draw, render

    provenance, table = Provenance(), jobs(root, settings)
    made = [path for job in table[:-1] for path in job.outputs.values()]
    require_apart({"--metrics": metrics, "--timings": timings, "--out": out}, made)
    lineage.require(root, table)
    kind_page = page_of(settings)
    rows, metadata = gather.read_metrics(root, settings, kind_page, table[-1])
    times = gather.read_timings(table)
    contents = gather.read_contents(root, settings, kind_page, rows, times)
    parts = draw(contents)
    page = render(contents, parts)
    with (
        atomic(metrics, timings, out) as [new_metrics, new_timings, new_page],
        replacing(figures) as new_figures,
    ):
        write_table(new_metrics, rows, metadata)
        write_table(new_timings, times, Metadata(kind="timings", inputs={"metrics": digest(new_metrics)}))
        new_page.write_text(page, encoding="utf-8")
        files.save(parts, new_figures)
    provenance.write(out)


if __name__ == "__main__":
    main()
