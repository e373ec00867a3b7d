"""What `pairflow run` says at the end: the best method, the page, and the command for new molecules."""

import shlex
from pathlib import Path

from pairflow.report.results import FinishedExperiment, read_finished
from pairflow.report.tables import METRICS, list_metrics
from pairflow.report.words import REFERENCES, USABLE, format_number, format_percent, join_steps, pluralise
from pairflow.training.choice import best_run, leading_evaluation, mean_values


def closing_lines(root: Path) -> list[str]:
    """The lines for the finished experiment in `root`."""
    finished = read_finished(root)
    lines = [f"report: {root / 'report.html'}"]
    headline = _headline(finished)
    if not headline:
        return lines
    if finished.experiment.modality == "molecules":
        out = f"{root.name}.smi"
        command = ["pairflow", "sample", "--model", str(root), "--count", "1000", "--unique", "--out", out]
        lines.append(f"new molecules: {shlex.join(command)}")
    return [headline, *lines]


def _headline(finished: FinishedExperiment) -> str:
    """How good the best method is, by the metric that pages begin with; empty without any value of it.

    Images are compared with the test images where these are a reference.
    """
    rows = finished.measured
    for metric in list_metrics(finished.experiment.modality):
        part = rows[rows.metric == metric]
        if not METRICS[metric].headline or part.empty:
            continue
        part = part[part.evaluation == leading_evaluation(part.evaluation)]
        part = part[part.reference == part.reference.min()]  # test comes before train
        part = part[part.extractor == part.extractor.min()]
        means = mean_values(part)
        method, nfe = best_run(means, METRICS[metric].best == "lowest")
        methods = finished.experiment.methods
        contest = f"best of {pluralise(len(methods), 'method')}: " if len(methods) > 1 else ""
        start = f"{contest}{method} with {join_steps([nfe])}, "
        if finished.experiment.modality == "molecules":
            share = means[method, nfe] / int(part.samples.max())
            only = "only " if share < USABLE else ""
            return f"{start}{only}{format_percent(share)} of its samples are valid molecules"
        value = format_number(means[method, nfe], 2)
        against = METRICS[metric].against.format(REFERENCES[part.reference.iloc[0]])
        return f"{start}{METRICS[metric].label} {value} {against}"
    return ""
