"""What guidance brings and what it costs: samples by its weight, and the property's distribution."""

from dataclasses import dataclass

import pandas as pd

from pairflow.kinds.molecules.page import charts
from pairflow.report.contents import Contents
from pairflow.report.drawing import Picture


@dataclass(frozen=True)
class GuidanceDetails:
    """Charts of an evaluation that is repeated at several weights of guidance.

    `trades`: NFE -> the share of novel molecules against that of the class. `shapes`: NFE -> method -> the
    property's distribution at each weight, where the page shows it.
    """

    condition: str
    trades: dict[int, Picture]
    shapes: dict[int, dict[str, Picture]]


def describe_guidance(
    contents: Contents, evaluation: str, labels: dict[str, str], prefix: str
) -> GuidanceDetails | None:
    """The details of one evaluation; None without several weights, or where no class was counted.

    `labels` are the properties that have histograms, and their names in charts.
    """
    weights = contents.experiment.guided().get(evaluation, {})
    rows = contents.measured[contents.measured.evaluation.isin(list(weights))]
    rows = rows[rows.metric.isin(["in_class", "novel_strict", "valid"])]
    if "in_class" not in set(rows.metric):
        return None
    rows = rows.assign(weight=rows.evaluation.map(weights), share=rows.value / rows.samples)
    means = rows.groupby(["nfe", "method", "weight", "metric"])["share"].mean().unstack().reset_index()
    means = means.assign(in_class=means.in_class / means.valid)
    condition = str(contents.experiment.evaluations[evaluation].condition)
    trades = {
        int(nfe): charts.guidance(
            {method: points[points.method == method] for method in points.method.unique()},
            f"{condition}, NFE {int(nfe):,}",
            f"{prefix}-guidance{int(nfe)}",
        )
        for nfe, points in means.groupby("nfe")
    }
    name = condition.partition("=")[0]
    shapes = _shapes(contents, weights, name, labels[name], prefix) if name in labels else {}
    return GuidanceDetails(condition, trades, shapes)


def _shapes(
    contents: Contents, weights: dict[str, float], name: str, label: str, prefix: str
) -> dict[int, dict[str, Picture]]:
    by_nfe: dict[int, dict[str, dict[str, pd.DataFrame]]] = {}
    for evaluation, weight in sorted(weights.items(), key=lambda item: item[1]):
        for nfe, methods in contents.part.properties.get(evaluation, {}).items():
            for method, counts in methods.items():
                own = by_nfe.setdefault(nfe, {}).setdefault(method, {})
                own[f"guidance {weight:g}"] = counts[counts.property == name]
    return {
        nfe: {
            method: charts.histograms(counts, label, f"{prefix}-guided{nfe}-{place}")
            for place, (method, counts) in enumerate(methods.items())
        }
        for nfe, methods in sorted(by_nfe.items(), reverse=True)
    }
