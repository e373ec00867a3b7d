"""What is suspicious about samples of text: their means beside those of real text and of the controls."""

from collections.abc import Iterator, Mapping

import pandas as pd

from pairflow.kinds.text.controls import CONTROLS
from pairflow.report.flaws import Flaw, Run
from pairflow.report.grid import REAL

HELD_OUT = "held-out text"
SECOND = "second_ppl"  # what `TextValues` call the perplexity under the second judge
_LEAST_ENTROPY = 0.9  # of that of held-out text: samples below it vary too little
_LEAST_DISTINCT = 0.5  # likewise, for distinct 4-grams

TextValues = Mapping[str, float]  # metric -> mean


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


def mean_values(rows: pd.DataFrame, evaluation: str, keys: list[str]) -> dict[tuple, dict[str, float]]:
    """Key -> metric -> the mean over seeds and trials; the second judge's perplexity is `SECOND`."""
    own = rows[(rows.evaluation == evaluation)].dropna(subset="value")
    own = own.assign(metric=own.metric.mask(is_second(own), SECOND))
    means = own.groupby([*keys, "metric"])["value"].mean()
    values_of: dict[tuple, dict[str, float]] = {}
    for (*key, metric), value in means.items():
        values_of.setdefault(tuple(key), {})[metric] = float(value)
    return values_of


def is_second(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each row is of the second judge."""
    return rows.extractor.astype("object").fillna("").str.startswith("transformer")
