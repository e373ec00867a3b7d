"""Samples of text beside real text and beside rows that anyone can draw: a table, charts and warnings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pairflow.metrics.text.controls import CONTROLS
from pairflow.report import figures
from pairflow.report.drawing import Legend, Picture, legend
from pairflow.report.experiment.contents import Contents
from pairflow.report.tables import METRICS, REAL, choose_digits
from pairflow.report.words import format_number

FLOOR = "held-out text"
_SECOND = "second_ppl"  # what `Values` call the perplexity under the second judge
_COLUMNS = {
    "judge_ppl": "Perplexity",
    _SECOND: "Transformer’s",
    "gen_ppl": "GPT-2’s",
    "entropy": "Entropy",
    "known_words": "Known words",
    "js_trigram": "Trigrams",
    "rep_4": "Repeats",
    "distinct_4": "Distinct",
    "copied_span": "Copied",
}  # metric -> heading
_METRICS = {name: "judge_ppl" if name == _SECOND else name for name in _COLUMNS}
_LEAST_ENTROPY = 0.9  # of that of held-out text: samples below it vary too little
_LEAST_DISTINCT = 0.5  # likewise, for distinct 4-grams

Values = Mapping[str, float]  # metric -> mean


@dataclass(frozen=True)
class TextRow:
    """A row of the table: its name and setting, its values by metric, and what they give warning of.

    `nfe` is None for real text and controls.
    """

    name: str
    setting: str
    values: Values
    nfe: int | None = None
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class TextDetails:
    """Real text and the controls, and every method at each number of steps: the two parts of a table.

    `judges` are what the perplexity is measured by, and `digits` are the decimals of what was measured.
    `charts` show the perplexity against the entropy: through the numbers of steps, and then through the
    temperatures at each number of steps, where there are several.
    """

    judges: list[str]
    parts: list[list[TextRow]]
    digits: Mapping[str, int]
    legend: Legend
    charts: list[Picture]

    @property
    def columns(self) -> dict[str, str]:
        """Heading of a column -> the name of its values."""
        return {_COLUMNS[name]: name for name in self.digits}

    @property
    def metrics(self) -> dict[str, str]:
        """Heading of a column -> its metric."""
        return {_COLUMNS[name]: _METRICS[name] for name in self.digits}

    def text(self, row: TextRow, metric: str) -> str:
        return format_number(row.values.get(metric, np.nan), self.digits[metric])


def describe_text(contents: Contents, evaluation: str, prefix: str) -> TextDetails | None:
    """The details of one evaluation; None where the controls were not measured."""
    points = _find_points(contents, evaluation)
    if len(points) <= len(CONTROLS):
        return None
    rows = measured_rows(contents, evaluation)
    others = [TextRow(name, "", values) for name, values in points.items()]
    values = [row.values for row in (*others, *rows)]
    methods = list(dict.fromkeys(row.name for row in rows))
    keys = legend(methods, f"{prefix}-text", figures.contrast(methods))
    for place, name in enumerate(points):
        keys.add(figures.MARKS[name], name, f"{prefix}-mark{place}")
    return TextDetails(
        _name_judges(contents.measured, evaluation),
        [others, rows],
        {
            name: max(METRICS[metric].digits, choose_digits([own.get(name, np.nan) for own in values]))
            for name, metric in _METRICS.items()
            if any(name in own for own in values)
        },
        keys,
        _draw(contents, evaluation, rows, points, prefix),
    )


def measured_rows(contents: Contents, evaluation: str) -> list[TextRow]:
    """Every method at each number of steps, with what its values give warning of."""
    points = _find_points(contents, evaluation)
    if len(points) <= len(CONTROLS):
        return []
    means = _means(contents.measured, evaluation, ["method", "nfe"])
    rows = [
        TextRow(
            method,
            f"NFE {int(nfe):,}",
            values,
            int(nfe),
            find_warnings(values, points[FLOOR], points["shuffled"]),
        )
        for (method, nfe), values in means.items()
    ]
    order = {method: place for place, method in enumerate(contents.methods)}
    return sorted(rows, key=lambda row: (order[row.name], row.nfe or 0))


def _name_judges(rows: pd.DataFrame, evaluation: str) -> list[str]:
    """`kneser-ney-6-1a2b3c4d` in words, and the second judge, if there is one."""
    own = rows[(rows.evaluation == evaluation) & (rows.metric == "judge_ppl")]
    *_, order, digits = own.extractor[~_is_second(own)].iloc[0].split("-")
    others = own.extractor[_is_second(own)].unique()
    return [
        f"a Kneser-Ney model of {order}-grams, {digits}",
        *(f"a {name.replace('-', ', ')}" for name in others),
    ]


def _is_second(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each row is of the second judge."""
    return rows.extractor.astype("object").fillna("").str.startswith("transformer")


def _find_points(contents: Contents, evaluation: str) -> dict[str, Values]:
    """Real text and the controls, as far as they were measured."""
    real = _means(contents.real, evaluation, ["method"])
    controls = _means(contents.controls, evaluation, ["method"])
    points = {FLOOR: real.get((REAL,), {})} | {name: controls.get((name,), {}) for name in CONTROLS}
    return {name: values for name, values in points.items() if values}


def find_warnings(values: Values, real: Values, shuffled: Values) -> list[str]:
    """What is suspicious about samples, from their means and those of real and of shuffled text.

    A good perplexity is no proof: rows of one common word repeated have one (arXiv 2606.08417).
    """
    suspicious = {
        "likelier than real text": values["judge_ppl"] < real["judge_ppl"],
        "varies too little": values["entropy"] < _LEAST_ENTROPY * real["entropy"],
        "samples repeat one another": values["distinct_4"] < _LEAST_DISTINCT * real["distinct_4"],
        "trigrams no nearer to text than shuffled text’s": values["js_trigram"] >= shuffled["js_trigram"],
    }
    return [text for text, holds in suspicious.items() if holds]


def _means(rows: pd.DataFrame, evaluation: str, keys: list[str]) -> dict[tuple, dict[str, float]]:
    """Key -> metric -> the mean over seeds and trials."""
    own = rows[(rows.evaluation == evaluation)].dropna(subset="value")
    own = own.assign(metric=own.metric.mask(_is_second(own), _SECOND))
    means = own.groupby([*keys, "metric"])["value"].mean()
    values_of: dict[tuple, dict[str, float]] = {}
    for (*key, metric), value in means.items():
        values_of.setdefault(tuple(key), {})[metric] = float(value)
    return values_of


def _draw(
    contents: Contents,
    evaluation: str,
    rows: Sequence[TextRow],
    points: Mapping[str, Values],
    prefix: str,
) -> list[Picture]:
    title = "Perplexity and entropy by"
    lines = _group((row.name, row.setting, row.values) for row in rows)
    charts = [figures.plane(lines, points, f"{title} sampling steps", f"{prefix}-plane")]
    temperatures = contents.experiment.frontiers().get(evaluation, {})
    heated = [
        (row, f"temperature {temperature:g}")
        for name, temperature in sorted(temperatures.items(), key=lambda item: item[1])
        for row in measured_rows(contents, name)
    ]
    for nfe in sorted({row.nfe for row, _ in heated if row.nfe}):
        lines = _group((row.name, setting, row.values) for row, setting in heated if row.nfe == nfe)
        name = f"{prefix}-frontier{nfe}"
        charts.append(figures.plane(lines, points, f"{title} temperature, NFE {nfe}", name))
    return charts


def _group(rows: Iterable[tuple[str, str, Values]]) -> dict[str, dict[str, Values]]:
    """Method -> setting -> values."""
    lines: dict[str, dict[str, Values]] = {}
    for method, setting, values in rows:
        lines.setdefault(method, {})[setting] = values
    return lines
