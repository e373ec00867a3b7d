"""Samples of text beside real text and beside rows that anyone can draw: a table, charts and warnings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.text.kind import METRICS
from pairflow.kinds.text.page.charts import MARKS, plane
from pairflow.report import figures
from pairflow.report.contents import Contents
from pairflow.report.downloads import Part, Sheet
from pairflow.report.drawing import Picture, key, legend
from pairflow.report.grid import REAL, choose_digits
from pairflow.report.kind_page import Details
from pairflow.report.results import FinishedExperiment
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


def describe_text(contents: Contents, evaluation: str, prefix: str) -> Details:
    """Real text and the controls, and every method at each number of steps: the two parts of a table.

    Empty where the controls were not measured. `judge` is what the perplexity is measured by, and `columns`
    are heading -> metric. `charts` show the perplexity against the entropy: through the numbers of steps, and
    then through the temperatures at each number of steps, where there are several.
    """
    points = find_points(contents.metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return Details()
    rows = measured_rows(contents, evaluation)
    parts = [[TextRow(name, "", values) for name, values in points.items()], rows]
    values = [row.values for part in parts for row in part]
    methods = list(dict.fromkeys(row.name for row in rows))
    judged = contents.measured
    judged = judged[(judged.evaluation == evaluation) & (judged.metric == "judge_ppl")]
    *_, order, number = judged.extractor.iloc[0].split("-")  # kneser-ney-6-1a2b3c4d
    keys = legend(methods, f"{prefix}-text", figures.contrast(methods))
    for place, name in enumerate(points):
        keys.append((key(MARKS[name], f"{prefix}-mark{place}"), name))
    digits = {
        name: max(METRICS[name].digits, choose_digits([own.get(name, np.nan) for own in values]))
        for name in _COLUMNS
        if any(name in own for own in values)
    }
    printed = {
        _COLUMNS[name]: [format_number(own.get(name, np.nan), number) for own in values]
        for name, number in digits.items()
    }
    shown = {
        "judge": f"a Kneser-Ney model of {order}-grams, {number}",
        "parts": parts,
        "columns": {_COLUMNS[name]: name for name in digits},
        "printed": list(zip(*printed.values(), strict=True)),
        "legend": keys,
        "charts": _draw(contents, evaluation, rows, points, prefix),
    }
    return Details(shown, sheets=[_make_sheet(contents, evaluation, parts, printed, digits)])


def _make_sheet(
    contents: Contents,
    evaluation: str,
    parts: Sequence[Sequence[TextRow]],
    printed: Mapping[str, list[str]],
    metrics: Iterable[str],
) -> Sheet:
    """Samples of text beside real text and the controls."""
    title = f"Beside real text and controls, evaluation {evaluation}"
    rows = [row for part in parts for row in part]
    columns = {
        "Rows": [f"{row.name} {row.setting}".rstrip() for row in rows],
        **printed,
        "Warnings": ["; ".join(row.warnings) for row in rows],
    }
    part = Part(f"{title}; {contents.name_origin()}", list(columns), [*zip(*columns.values(), strict=True)])
    records = [
        {
            "rows": row.name,
            "nfe": row.nfe,
            "calls": row.calls,
            **{key: row.values.get(key) for key in metrics},
        }
        for row in rows
    ]
    return Sheet(f"{contents.name}-{evaluation}-controls", title, [part], records)


def measured_rows(results: FinishedExperiment, evaluation: str) -> list[TextRow]:
    """Every method at each number of steps, with what its values give warning of; none where the controls
    were not measured."""
    points = find_points(results.metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return []
    means = mean_values(results.measured, evaluation, ["method", "nfe"])
    count = results.experiment.count_calls
    return [
        TextRow(
            method,
            f"NFE {int(nfe):,}, {pluralise(calls, 'call')}",
            values,
            int(nfe),
            calls,
            find_warnings(values, points[HELD_OUT], points["shuffled"]),
        )
        for method in results.experiment.methods
        for (name, nfe), values in means.items()
        if name == method
        for calls in [count(method, int(nfe), evaluation)]
    ]


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


def _group(rows: Iterable[tuple[str, str, TextValues]]) -> dict[str, dict[str, TextValues]]:
    """Method -> setting -> values."""
    lines: dict[str, dict[str, TextValues]] = {}
    for method, setting, values in rows:
        lines.setdefault(method, {})[setting] = values
    return lines


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
