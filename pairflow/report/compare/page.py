"""Makes the page of a comparison: one HTML file that opens offline."""

from pairflow.report.compare.inputs import differing_settings
from pairflow.report.compare.sections import ComparedRuns
from pairflow.report.compare.verdict import write_verdict
from pairflow.report.differences import count_verdicts
from pairflow.report.stats import LEVEL, REPETITIONS, SIGNIFICANCE
from pairflow.report.templates import make_environment


def render(compared: ComparedRuns, numbers: str) -> str:
    """Write the page as HTML. `numbers` is the name of the file of numbers next to it."""
    runs = compared.runs
    metrics = {name: about for run in runs for name, about in run.experiment.data.list_metrics().items()}
    template = make_environment(metrics=metrics).get_template("compare/compare.html")
    return template.render(
        compared=compared,
        baseline=compared.baseline,
        count_verdicts=count_verdicts,
        verdict=write_verdict(compared),
        runs=runs,
        single=len(runs) == 1,
        numbers=numbers,
        level=f"{100 * LEVEL:.0f} %",
        significance=SIGNIFICANCE,
        repetitions=REPETITIONS,
        differing=differing_settings(runs),
    )
