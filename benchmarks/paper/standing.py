"""Where PairFlow stands: validity in one step, as printed and as measured, beside generators of others."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.paper.printed import DATASETS, Printed, parse_name, printed
from pairflow.config import tail_revises
from pairflow.metrics.metric import leading_evaluation
from pairflow.report.results import FinishedExperiment

_FILE = Path(__file__).with_name("generators.csv")
_SAMPLES = 1024  # behind a printed count


@dataclass(frozen=True)
class Generator:
    """One line of the comparison; numbers are texts, empty where they are not known.

    `rows` are what it generates, `calls` how many calls of the network can change a sample. `valid` is
    in per cent of the samples, `unique` of the valid ones, by canonical SMILES; `yields` are the samples that
    are both, in per cent.
    """

    method: str
    rows: str
    calls: str
    valid: str
    source: str
    unique: str = ""
    yields: str = ""
    fcd: str = ""


def generators(runs: Iterable[FinishedExperiment]) -> dict[str, list[Generator]]:
    """Name of a data set -> its lines: those of others, the paper's, the best first, and measured ones."""
    own = [*runs]
    return {
        DATASETS[dataset]: [
            *others,
            *_printed(dataset),
            *(line for run in own if run.dataset == dataset for line in _measured(run)),
        ]
        for dataset, others in _others().items()
    }


@cache
def _others() -> dict[str, list[Generator]]:
    lines: dict[str, list[Generator]] = {}
    with _FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            lines.setdefault(row.pop("dataset"), []).append(Generator(**row))
    return lines


def _printed(dataset: str) -> list[Generator]:
    """The paper's methods at one step; it counts different strings, so that `unique` is not known."""
    by_method: dict[str | None, Printed] = {}
    for value in printed():
        if (value.dataset, value.metric, value.nfe) == (dataset, "valid", 1):
            by_method.setdefault(parse_name(value.name), value)
    return [
        Generator(value.name, "SMILES", f"{calls}", f"{100 * value.value / _SAMPLES:.1f}", "the paper")
        for name, value in sorted(by_method.items(), key=lambda item: -item[1].value)
        for calls in [1 + tail_revises(name or "")]
    ]


def _measured(run: FinishedExperiment) -> Iterator[Generator]:
    """The methods of an experiment at one step, if it has measured that."""
    leading = leading_evaluation(run.experiment.evaluations)
    settings, here = run.experiment.evaluations[leading], run.measured[run.measured.evaluation == leading]
    means = here[here.nfe == 1].groupby(["method", "metric"])["value"].mean().unstack()
    for method in run.experiment.methods:
        if method not in means.index or "unique_strict" not in means:
            continue
        valid, unique = means.loc[method, "valid"], means.loc[method, "unique_strict"]
        yield Generator(
            method,
            "SMILES",
            str(run.experiment.count_calls(method, 1, leading)),
            f"{100 * valid / settings.samples:.1f}",
            f"measured: {run.name}, {run.scale}",
            f"{100 * unique / valid:.1f}" if valid else "",
            f"{100 * unique / settings.samples:.1f}",
        )
