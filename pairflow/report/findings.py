"""What the head of a page consists of: the table of methods, flaws and boxes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pairflow.limits import HOPELESS
from pairflow.metrics.shared import BOUNDS
from pairflow.report.grid import Grid
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_number, format_percent, join_words

NAMED = 4  # most methods that a box or a sentence names


class Flaw(NamedTuple):
    """A flaw of a method: its kind, a text that follows the method's name, and the measured share, if any."""

    kind: str
    text: str
    value: float = np.nan


Run = tuple[str, int]  # method and NFE
Flaws = Mapping[Run, list[Flaw]]


@dataclass(frozen=True)
class MethodLine:
    """A row of the headline's table: a method at its best number of sampling steps (NFE).

    `calls` counts network calls that can change a sample. `seconds` is the time of pairing, base training and
    distillations, a mean over seeds; NaN if it is unknown.
    """

    method: str
    nfe: int
    calls: int
    seconds: float


@dataclass(frozen=True)
class Measure:
    """A column of the headline's table.

    Attributes:
        heading: the heading of the column.
        metric: the metric behind it.
        values: the value by (method, number of steps).
        real: the text for real data.
        digits: the number of decimals; None if values are shares.
        sign: what precedes every value.
        judges: whether a model is hopeless if its value is hardly above 0.
    """

    heading: str
    metric: str
    values: Mapping[Run, float]
    real: str = "–"
    digits: int | None = None
    sign: str = ""
    judges: bool = False

    def value(self, line: MethodLine) -> float:
        """Return the value of a line; NaN if it was not measured."""
        return self.values.get((line.method, line.nfe), np.nan)

    def text(self, line: MethodLine) -> str:
        value = self.value(line)
        text = format_percent(value) if self.digits is None else format_number(value, self.digits)
        return text if np.isnan(value) else f"{self.sign}{text}"


@dataclass(frozen=True)
class Headline:
    """The head of a page: a table of all methods, and a sentence on the best one.

    `best` is the line with the best value of the first measure, and `samples` the number of samples per
    trial. `KindPage.headline_columns` defines the measures and their keys.
    """

    evaluation: str
    lines: list[MethodLine]
    best: MethodLine
    measures: dict[str, Measure]
    samples: int
    sentence: str

    @property
    def metrics(self) -> dict[str, str]:
        """A dict from the heading of a column to its metric."""
        return {measure.heading: measure.metric for measure in self.measures.values()}

    def values(self, line: MethodLine) -> list[float]:
        """Return a line's values, in the order of the table."""
        return [self.value(key, line) for key in self.measures]

    def value(self, key: str, line: MethodLine) -> float:
        """Return the value of a measure; NaN if it was not measured."""
        measure = self.measures.get(key)
        return measure.value(line) if measure else np.nan

    @property
    def hopeless(self) -> bool:
        """Whether hardly any sample of the best method is good."""
        return any(
            measure.value(self.best) < HOPELESS for measure in self.measures.values() if measure.judges
        )

    def name_values(self, values: Mapping[MethodLine, float], text: Callable[[float], str]) -> str:
        """List the methods with their values, which `text` writes; if they are many, write only their number
        and the range of the values."""
        if len(values) > NAMED:
            ends = f"{text(min(values.values()))} to {text(max(values.values()))}"
            return f"{len(values)} of {len(self.lines)} methods ({ends})"
        return join_words([f"{line.method} ({text(value)})" for line, value in values.items()])

    def name_shares(self, flawed: Mapping[MethodLine, Sequence[Flaw]]) -> str:
        """List the methods, each with the share of its first flaw."""
        return self.name_values({line: flaws[0].value for line, flaws in flawed.items()}, format_percent)


class Box(NamedTuple):
    """A box below the headline that says what is wrong, and what to do.

    It is `severe` if the best method is not usable. A `late` box comes after the boxes about trainings.
    """

    title: str
    text: str
    severe: bool = False
    late: bool = False


def measure_grid(grid: Grid) -> Measure:
    """Make a column of the headline's table from `grid`, with the value of real data.

    A metric that counts samples, if models are ranked by it, is shown as a share of the samples.
    """
    if grid.about.leading_share:
        samples = float(grid.frame.samples.max())
        shares = {run: mean / samples for run, mean in grid.means.items()}
        real = format_percent(grid.floor.mean / samples) if grid.floor else "–"
        return Measure(grid.label, grid.metric, shares, real, judges=True)
    real = f"{grid.floor.text} {grid.floor.spread}".rstrip() if grid.floor else "–"
    return Measure(grid.label, grid.metric, grid.means, real, grid.digits)


def measure_bounds(results: FinishedExperiment, leading: Grid) -> dict[str, Measure]:
    """Make columns of the bounds on the likelihood of held-out rows, by name; none if no rows are held out.
    `leading` says which methods and steps the columns have."""
    measures = {}
    for name, about in BOUNDS.items():
        if bounds := results.bounds.get(name):
            values = {run: bounds.get(run[0], np.nan) for run in leading.means}
            measures[name] = Measure(about.label, name, values, digits=about.digits, sign="≤ ")
    return measures
