"""What `pairflow run` says at the end: the best method, the page, and the command for new molecules."""

import shlex
from pathlib import Path

import pandas as pd

from pairflow.report.results import FinishedExperiment, read_finished
from pairflow.report.tables import METRICS, list_metrics, summarise
from pairflow.report.words import REFERENCES, format_number, format_percent, join_steps, pluralise


def closing_lines(root: Path) -> list[str]:
    """The lines for the finished experiment in `root`."""
    finished = read_finished(root)
    lines = [f"report: {root / 'report.html'}"]
    best = _best(finished)
    if best is None:
        return lines
    if finished.experiment.modality == "molecules":
        out = f"{root.name}.smi"
        command = ["pairflow", "sample", "--model", str(root), "--count", "1000", "--unique", "--out", out]
        lines.append(f"new molecules: {shlex.join(command)}")
    return [_headline(finished, best), *lines]


def _best(finished: FinishedExperiment) -> pd.Series | None:
    """The best mean of the metric that pages begin with: a row of `summarise`, `samples` and `reference`.

    It is of the first evaluation. Images are compared with the test images where these are a reference.
    """
    rows = finished.measured
    rows = rows[rows.evaluation == next(iter(finished.experiment.evaluations))]
    for metric in list_metrics(finished.experiment.modality):
        part = rows[rows.metric == metric]
        if METRICS[metric].headline and len(part):
            part = part[part.reference == part.reference.min()]  # test comes before train
            summary = summarise(part[part.extractor == part.extractor.min()])
            place = summary["mean"].idxmin() if METRICS[metric].best == "lowest" else summary["mean"].idxmax()
            first = part.iloc[0]
            return pd.concat([summary.loc[place], first[["samples", "reference"]]])
    return None


def _headline(finished: FinishedExperiment, best: pd.Series) -> str:
    methods = pluralise(len(finished.experiment.methods), "method")
    start = f"best of {methods}: {best.method} with {join_steps([best.nfe])}, "
    if finished.experiment.modality == "molecules":
        share = best["mean"] / best.samples
        only = "only " if share < 0.5 else ""
        return f"{start}{only}{format_percent(share)} of its samples are valid molecules"
    metric = METRICS[best.metric]
    return (
        f"{start}{metric.label} {format_number(best['mean'], 2)} to the {REFERENCES[best.reference]} images"
    )
