"""Samples of text beside real text and beside rows that anyone can draw: a table, charts and warnings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.text.kind import METRICS
from pairflow.kinds.text.page.charts import MARKS, plane
from pairflow.report import figures
from pairflow.report.contents import Contents
from pairflow.report.downloads import Part, Sheet
from pairflow.report.drawing import Legend, Picture, key, legend
from pairflow.report.flaws import Flaw, Run
from pairflow.report.grid import REAL, choose_digits
from pairflow.report.kind_page import Details
from pairflow.report.words import format_number, pluralise

HELD_OUT = "held-out text"
_LEAST_ENTROPY = 0.9  # of that of held-out text: samples below it vary too little
_LEAST_DISTINCT = 0.5  # likewise, for distinct 4-grams

TextValues = Mapping[str, float]  # metric -> mean
_COLUMNS = {
    "judge_ppl": "Perplexity",
    "gen_ppl": "GPT-2’s",
    "entropy": "Entropy",
    "known_words": "Known words",
    "js_trigram": "Trigrams",
    "rep_4": "Repeats",
    "distinct_4": "Distinct",
    "copied_span": "Copied",
}  # metric -> heading


@dataclass(frozen=True)
class TextRow:
    """A row of the table: its name and setting, its values by metric, and what they give warning of; `nfe`
    and `calls` of the network are None for real text and controls."""

    name: str
    setting: str
    values: TextValues
    nfe: int | None = None
    calls: int | None = None
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class TextDetails(Details):
    """Real text and the controls, and every method at each number of steps: the two parts of a table.

    `judge` is what the perplexity is measured by, and `digits` are the decimals of what was measured.
    `charts` show the perplexity against the entropy: through the numbers of steps, and then through the
    temperatures at each number of steps, where there are several.
    """

    evaluation: str = ""
    judge: str = ""
    parts: list[list[TextRow]] = field(default_factory=list)
    digits: Mapping[str, int] = field(default_factory=dict)
    legend: Legend | None = None
    charts: list[Picture] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, str]:
        """Heading of a column -> its metric."""
        return {_COLUMNS[name]: name for name in self.digits}

    def text(self, row: TextRow, metric: str) -> str:
        return format_number(row.values.get(metric, np.nan), self.digits[metric])

    def make_sheets(self, origin: str, name: str) -> list[Sheet]:
        """Samples of text beside real text and the controls."""
        title = f"Beside real text and controls, evaluation {self.evaluation}"
        rows = [row for part in self.parts for row in part]
        columns = {
            "Rows": [f"{row.name} {row.setting}".rstrip() for row in rows],
            **{heading: [self.text(row, metric) for row in rows] for heading, metric in self.columns.items()},
            "Warnings": ["; ".join(row.warnings) for row in rows],
        }
        part = Part(f"{title}; {origin}", list(columns), list(zip(*columns.values(), strict=True)))
        records = [
            {
                "rows": row.name,
                "nfe": row.nfe,
                "calls": row.calls,
                **{key: row.values.get(key) for key in self.digits},
            }
            for row in rows
        ]
        return [Sheet(f"{name}-controls", title, [part], records)]


def describe_text(contents: Contents, evaluation: str, prefix: str) -> TextDetails | None:
    """The details of one evaluation; None where the controls were not measured."""
    points = find_points(contents.evidence.metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return None
    rows = measured_rows(contents, evaluation)
    others = [TextRow(name, "", values) for name, values in points.items()]
    values = [row.values for row in (*others, *rows)]
    methods = list(dict.fromkeys(row.name for row in rows))
    judged = contents.measured
    judged = judged[(judged.evaluation == evaluation) & (judged.metric == "judge_ppl")]
    *_, order, number = judged.extractor.iloc[0].split("-")  # kneser-ney-6-1a2b3c4d
    keys = legend(methods, f"{prefix}-text", figures.contrast(methods))
    for place, name in enumerate(points):
        keys.append((key(MARKS[name], f"{prefix}-mark{place}"), name))
    return TextDetails(
        evaluation=evaluation,
        judge=f"a Kneser-Ney model of {order}-grams, {number}",
        parts=[others, rows],
        digits={
            name: max(METRICS[name].digits, choose_digits([own.get(name, np.nan) for own in values]))
            for name in _COLUMNS
            if any(name in own for own in values)
        },
        legend=keys,
        charts=_draw(contents, evaluation, rows, points, prefix),
    )


def measured_rows(contents: Contents, evaluation: str) -> list[TextRow]:
    """Every method at each number of steps, with what its values give warning of."""
    points = find_points(contents.evidence.metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return []
    means = mean_values(contents.measured, evaluation, ["method", "nfe"])
    count = contents.experiment.count_calls
    rows = [
        TextRow(
            method,
            f"NFE {int(nfe):,}, {pluralise(calls, 'call')}",
            values,
            int(nfe),
            calls,
            find_warnings(values, points[HELD_OUT], points["shuffled"]),
        )
        for (method, nfe), values in means.items()
        for calls in [count(method, int(nfe), evaluation)]
    ]
    order = {method: place for place, method in enumerate(contents.methods)}
    return sorted(rows, key=lambda row: (order[row.name], row.nfe or 0))


def _draw(
    contents: Contents,
    evaluation: str,
    rows: Sequence[TextRow],
    points: Mapping[str, TextValues],
    prefix: str,
) -> list[Picture]:
    title = "Perplexity and entropy by"
    by_steps = [(row.name, row.setting, row.values) for row in rows]
    charts = [plane(by_steps, points, f"{title} sampling steps", f"{prefix}-plane")]
    temperatures = contents.experiment.frontiers().get(evaluation, {})
    heated: dict[int | None, list[tuple[str, str, TextValues]]] = {}  # by number of steps
    for name, temperature in sorted(temperatures.items(), key=lambda item: item[1]):
        for row in measured_rows(contents, name):
            setting = f"temperature {temperature:g}, {pluralise(row.calls or 0, 'call')}"
            heated.setdefault(row.nfe, []).append((row.name, setting, row.values))
    for nfe in sorted(filter(None, heated)):
        name = f"{prefix}-frontier{nfe}"
        charts.append(plane(heated[nfe], points, f"{title} temperature, NFE {nfe}", name))
    return charts


def find_nonsense(metrics: pd.DataFrame, evaluation: str) -> Iterator[tuple[Run, Flaw]]:
    """The warnings about each run; none where the controls were not measured."""
    points = find_points(metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return
    samples = metrics[~metrics.method.isin([REAL, *CONTROLS])]
    for (method, nfe), values in mean_values(samples, evaluation, ["method", "nfe"]).items():
        for text in find_warnings(values, points[HELD_OUT], points["shuffled"]):
            yield (method, int(nfe)), Flaw("nonsense", text)


def find_points(metrics: pd.DataFrame, evaluation: str) -> dict[str, TextValues]:
    """Real text and the controls, as far as they were measured."""
    means = mean_values(metrics, evaluation, ["method"])
    points = {HELD_OUT: means.get((REAL,), {})} | {name: means.get((name,), {}) for name in CONTROLS}
    return {name: values for name, values in points.items() if values}


def find_warnings(values: TextValues, real: TextValues, shuffled: TextValues) -> list[str]:
    """What is suspicious about samples, from their means and the means of real and shuffled text.

    A good perplexity is no proof: rows of one common word repeated have one (arXiv 2606.08417).
    """
    suspicious = {
        "likelier than real text": values["judge_ppl"] < real["judge_ppl"],
        "varies too little": values["entropy"] < _LEAST_ENTROPY * real["entropy"],
        "samples repeat one another": values["distinct_4"] < _LEAST_DISTINCT * real["distinct_4"],
        "trigrams no nearer to text than shuffled text’s": values["js_trigram"] >= shuffled["js_trigram"],
    }
    return [text for text, holds in suspicious.items() if holds]


def mean_values(rows: pd.DataFrame, evaluation: str, keys: list[str]) -> dict[tuple, dict[str, float]]:
    """Key -> metric -> the mean over seeds and trials."""
    own = rows[(rows.evaluation == evaluation)].dropna(subset="value")
    means = own.groupby([*keys, "metric"])["value"].mean()
    values_of: dict[tuple, dict[str, float]] = {}
    for (*names, metric), value in means.items():
        values_of.setdefault(tuple(names), {})[metric] = float(value)
    return values_of
