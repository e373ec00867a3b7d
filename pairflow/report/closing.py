"""What `pairflow run` says at the end: the best method, the page, and the command for new molecules."""

import shlex
from dataclasses import replace
from pathlib import Path

from pairflow.config import Experiment
from pairflow.generate.choice import leading_evaluation
from pairflow.limits import HOPELESS
from pairflow.report.flaws import collect_evidence, find_flaws
from pairflow.report.panels import leading_panel
from pairflow.report.results import FinishedExperiment, is_complete, read_finished, read_logs
from pairflow.report.words import format_number, format_percent, join_steps


def closing_lines(root: Path) -> list[str]:
    """The lines for the finished experiment in `root`."""
    finished = read_finished(root)
    finished = replace(finished, logs=read_logs(root, finished.experiment))
    lines = [f"report: {root / 'report.html'}"]
    headline, share = _headline(finished)
    if not headline:
        return lines
    if share < HOPELESS:
        lines.append("not usable yet: the report says why, and what to do")
    elif command := sample_command(root, finished.experiment):
        lines.append(f"molecules: {command}")
    return [headline, *lines]


def sample_command(root: Path, experiment: Experiment) -> str:
    """The command that draws molecules from the best model in `root`; empty for other data.

    They are new ones, unless what is new would break the rules of the data.
    """
    if experiment.modality != "molecules":
        return ""
    model, out = root.as_posix(), f"{root.name}_samples.smi"
    wanted = ["--unique"] if is_complete(experiment) else ["--unique", "--novel"]
    temperature = experiment.evaluations[leading_evaluation(experiment.evaluations)].temperature
    if temperature != 1:
        wanted += ["--temperature", f"{temperature:g}"]
    return shlex.join(["pairflow", "sample", "--model", model, "--count", "1000", *wanted, "--out", out])


def _headline(finished: FinishedExperiment) -> tuple[str, float]:
    """How good the best method is, by the metric that pages begin with, and its share of such samples.

    What is wrong with its samples stands in the same line. Empty without any value of that metric; the share
    is 1 for data that are not molecules.
    """
    experiment = finished.experiment
    leading = leading_panel(finished.measured, experiment.modality)
    if leading is None:
        return "", 1.0
    method, nfe = leading.best()
    contest = f"best of {len(experiment.methods)} methods: " if len(experiment.methods) > 1 else ""
    start, value = f"{contest}{method} with {join_steps([nfe])}", leading.means[method, nfe]
    flaws = find_flaws(collect_evidence(finished), leading.evaluation)[method, nfe]
    if experiment.modality != "molecules":
        number = format_number(value, max(2, leading.about.digits))
        quality = f"{leading.about.label} {number} {leading.beside}".rstrip()
        return f"{start}, {quality}{_warn([flaw.text for flaw in flaws])}", 1.0
    share = value / int(leading.rows.samples.max())
    low = "invalid" if leading.metric == "valid" else "useless"  # what "only" says
    only = "only " if any(flaw.kind == low for flaw in flaws) else ""
    what = f"{leading.about.label} molecules"
    warnings = _warn([flaw.text for flaw in flaws if flaw.kind != low])
    return f"{start}, {only}{format_percent(share)} of its samples are {what}{warnings}", share


def _warn(texts: list[str]) -> str:
    return f"; warning: {', '.join(texts)}" if texts else ""
