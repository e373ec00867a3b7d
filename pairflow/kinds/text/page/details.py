"""Compares samples of text with real text and with trivial baselines: a table, charts and warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pairflow.kinds.text.controls import CONTROLS
from pairflow.kinds.text.settings import METRICS
from pairflow.report.colours import Style, contrast
from pairflow.report.contents import Contents
from pairflow.report.downloads import Part, Sheet
from pairflow.report.drawing import (
    Picture,
    describe_lines,
    finish,
    key,
    legend,
    line_chart,
    make_lines,
    make_log,
)
from pairflow.report.grid import REAL, choose_digits
from pairflow.report.kind_page import Details
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_number, pluralise

HELD_OUT = "held-out text"
_LEAST_ENTROPY = 0.9  # relative to held-out text: samples with less entropy vary too little
_LEAST_DISTINCT = 0.5  # the same for distinct 4-grams
_COLUMNS = {
    "judge_ppl": "Perplexity",
    "gen_ppl": "GPT-2’s",
    "entropy": "Entropy",
    "known_words": "Known words",
    "js_trigram": "Trigrams",
    "rep_4": "Repeats",
    "distinct_4": "Distinct",
}  # metric -> heading
_MARKS = {
    HELD_OUT: Style("ink", "*", ":"),
    "shuffled": Style("muted", "P", ":"),
    "chain": Style("muted", "p", ":"),
    "snippet": Style("muted", "h", ":"),
}


def describe_text(contents: Contents, evaluation: str, prefix: str) -> Details:
    """Compare all methods at each number of steps with real text and the controls (trivial baselines).

    Returns what the page shows: `parts`, the lines of a table, first real text and controls, then methods;
    `columns`, its metrics by heading; `judge`, the name of the model that measures the perplexity; and
    `charts` of the perplexity against the entropy, along the numbers of steps, and along the temperatures at
    each number of steps, if there are several. Empty if the controls were not measured. `prefix` begins the
    names of the charts.
    """
    points = find_points(contents.metrics, evaluation)
    if len(points) <= len(CONTROLS):
        return Details()
    rows = measured_rows(contents, evaluation)
    methods = [*rows.method.unique()]
    judged = contents.measured
    judged = judged[(judged.evaluation == evaluation) & (judged.metric == "judge_ppl")]
    *_, order, digest = judged.extractor.iloc[0].split("-")  # kneser-ney-6-1a2b3c4d
    keys = legend(methods, f"{prefix}-text", contrast(methods))
    for number, name in enumerate(points.index):
        keys.append((key(_MARKS[name], f"{prefix}-mark{number}"), name))
    real = points.reset_index().assign(setting="", warnings=[[] for _ in points.index])
    both = pd.concat([real, rows], ignore_index=True).astype({"nfe": "Int64", "calls": "Int64"})
    shown = {name: heading for name, heading in _COLUMNS.items() if name in both}
    printed = {heading: _print(both[name], METRICS[name].digits) for name, heading in shown.items()}
    lines = both[["method", "setting", "warnings"]].assign(texts=[*zip(*printed.values(), strict=True)])
    records = lines.to_dict("records")
    title = f"Compared with real text and controls, evaluation {evaluation}"
    named = {
        "Rows": (both.method + " " + both.setting).str.rstrip(),
        **printed,
        "Warnings": both.warnings.str.join("; "),
    }
    part = Part(f"{title}; {contents.name_origin()}", list(named), [*zip(*named.values(), strict=True)])
    numbers = both.rename(columns={"method": "rows"})[["rows", "nfe", "calls", *shown]].to_dict("records")
    return Details(
        {
            "judge": f"a Kneser-Ney model of {order}-grams, {digest}",
            "parts": [records[: len(points)], records[len(points) :]],
            "columns": {heading: name for name, heading in shown.items()},
            "legend": keys,
            "charts": _draw(contents, evaluation, rows, points, prefix),
        },
        sheets=[Sheet(f"{contents.name}-{evaluation}-controls", title, [part], numbers)],
    )


def _print(values: pd.Series, least: int) -> list[str]:
    """Format the numbers of a column of the table, with as many decimals as they need, at least `least`."""
    digits = max(least, choose_digits(values))
    return [format_number(value, digits) for value in values]


def measured_rows(results: FinishedExperiment, evaluation: str) -> pd.DataFrame:
    """Make a table with a row for each method at each number of steps, and the mean of each metric.

    Further columns: `method`, `nfe` (the number of steps), `calls` of the network, `setting` (steps and calls
    in words), and `warnings` (in words). The table is empty if the controls were not measured.
    """
    points, methods = find_points(results.metrics, evaluation), results.experiment.methods
    means = mean_values(results.measured, evaluation, ["method", "nfe"])
    if len(points) <= len(CONTROLS):
        means = means.iloc[:0]
    rows = means.reset_index().sort_values(
        "method", key=lambda names: names.map(methods.index), kind="stable"
    )
    count = results.experiment.count_calls
    calls = [count(row.method, row.nfe, evaluation) for row in rows.itertuples()]
    both = zip(rows.nfe, calls, strict=True)
    settings = [f"{pluralise(nfe, 'step')}, {pluralise(number, 'call')}" for nfe, number in both]
    controls = [points.loc[name].to_dict() for name in (HELD_OUT, "shuffled") if len(rows)]
    warnings = [find_warnings(row, *controls) for row in rows.to_dict("records")]
    return rows.assign(calls=calls, setting=settings, warnings=warnings)


def _draw(
    contents: Contents, evaluation: str, rows: pd.DataFrame, points: pd.DataFrame, prefix: str
) -> list[Picture]:
    title = "Perplexity and entropy by"
    charts = [_plane(rows, points, f"{title} sampling steps", f"{prefix}-plane")]
    parts = [rows.iloc[:0]]
    temperatures = contents.experiment.repeated("temperatures").get(evaluation, {})
    for name, temperature in sorted(temperatures.items(), key=lambda item: item[1]):
        part = measured_rows(contents, name)
        settings = [f"temperature {temperature:g}, {pluralise(calls, 'call')}" for calls in part.calls]
        parts.append(part.assign(setting=settings))
    for nfe, part in pd.concat(parts).groupby("nfe"):
        name = f"{prefix}-frontier{nfe}"
        charts.append(_plane(part, points, f"{title} temperature, {pluralise(int(nfe), 'step')}", name))
    return charts


def _plane(rows: pd.DataFrame, points: pd.DataFrame, title: str, name: str) -> Picture:
    """Draw the judge's perplexity against the entropy: a line per method, from `rows` (see
    `measured_rows`), and a point for real text and each control, from `points`. `name` is the name of the
    drawing."""
    look = contrast(rows.method)
    both = pd.concat([rows, points.reset_index().assign(setting=points.index)], ignore_index=True)
    lines = make_lines(both, "entropy", "judge_ppl", _write, lambda name: _MARKS.get(name) or look(name))
    x, y = "entropy of a sample (nats)", "judge perplexity"
    with line_chart(lines, x, y) as (figure, axes):
        make_log(axes, lines)
        return finish(figure, name, describe_lines(f"{title}; perplexity at entropy", lines), lines)


def _write(row: Any) -> Sequence[str]:
    return [row.setting, f"perplexity {row.judge_ppl:,.4g}", f"entropy {row.entropy:.3f}"]


def find_points(metrics: pd.DataFrame, evaluation: str) -> pd.DataFrame:
    """Make a table of the mean of each metric, with a row for real text and for each measured control."""
    means = mean_values(metrics, evaluation, ["method"]).rename(index={REAL: HELD_OUT})
    return means.loc[[name for name in _MARKS if name in means.index]]


def find_warnings(
    values: Mapping[str, float], real: Mapping[str, float], shuffled: Mapping[str, float]
) -> list[str]:
    """List what is suspicious about samples, by their mean metrics (`values`) and the metrics of real and
    shuffled text.

    A good perplexity does not prove good text: a common word, repeated, has one (arXiv 2606.08417).
    """
    suspicious = {
        "likelier than real text": values["judge_ppl"] < real["judge_ppl"],
        "varies too little": values["entropy"] < _LEAST_ENTROPY * real["entropy"],
        "samples repeat one another": values["distinct_4"] < _LEAST_DISTINCT * real["distinct_4"],
        "trigrams no nearer to text than shuffled text’s": values["js_trigram"] >= shuffled["js_trigram"],
    }
    return [text for text, holds in suspicious.items() if holds]


def mean_values(rows: pd.DataFrame, evaluation: str, keys: list[str]) -> pd.DataFrame:
    """Average metrics over seeds and trials: a row for each value of the keys, a column for each metric."""
    part = rows[rows.evaluation == evaluation].dropna(subset="value")
    return part.groupby([*keys, "metric"])["value"].mean().unstack()
