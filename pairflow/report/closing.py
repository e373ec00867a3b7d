"""What `pairflow run` says at the end: the best method, the page, and the command for new samples."""

from dataclasses import replace
from pathlib import Path

from pairflow.limits import HOPELESS
from pairflow.report.flaws import collect_evidence, find_flaws
from pairflow.report.grid import leading_grid
from pairflow.report.headline import Quality
from pairflow.report.pages import page_of
from pairflow.report.results import FinishedExperiment, read_finished, read_logs
from pairflow.report.words import join_steps


def closing_lines(root: Path) -> list[str]:
    """The lines for the finished experiment in `root`."""
    finished = read_finished(root)
    finished = replace(finished, logs=read_logs(root, finished.experiment))
    lines = [f"report: {root / 'report.html'}"]
    headline, share = _headline(finished)
    if not headline:
        return lines
    page = page_of(finished.experiment)
    if share < HOPELESS:
        lines.append("not usable yet: the report says why, and what to do")
    elif command := page.sample_command(root, finished.experiment):
        lines.append(f"{page.things}: {command}")
    return [headline, *lines]


def _headline(finished: FinishedExperiment) -> tuple[str, float]:
    """How good the best method is, by the metric that pages begin with, and its share of good samples.

    What is wrong with its samples stands in the same line. Empty without any value of that metric.
    """
    experiment = finished.experiment
    leading = leading_grid(finished.measured, experiment)
    if leading is None:
        return "", 1.0
    run = leading.best()
    contest = f"best of {len(experiment.methods)} methods: " if len(experiment.methods) > 1 else ""
    flaws = find_flaws(collect_evidence(finished), leading.evaluation)[run]
    quality: Quality = page_of(experiment).rate(leading, finished, flaws)
    warnings = ", ".join(flaw.text for flaw in flaws if flaw not in quality.flaws)
    start, end = f"{contest}{run[0]} with {join_steps([run[1]])}", f"; warning: {warnings}" * bool(warnings)
    return f"{start}, {quality.text}{end}", quality.share
