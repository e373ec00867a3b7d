"""Makes what only molecules have in the page's section on quality, such as invalid samples and properties."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pairflow.kinds.molecules.measures.plausible import START
from pairflow.kinds.molecules.page import charts
from pairflow.kinds.molecules.settings import own_columns
from pairflow.kinds.molecules.settings.metrics import METRICS
from pairflow.report.contents import Contents
from pairflow.report.drawing import Picture, legend
from pairflow.report.grid import REAL, Grid
from pairflow.report.kind_page import Details
from pairflow.report.words import format_percent, name_file, pluralise
from pairflow.settings.conditions import SPREAD

PROPERTIES = {"qed": "QED", "sa": "SA score", "logp": "logP", "weight": "molecular weight (g/mol)"}
_KEPT = ("plausible", "novel_strict", "common_scaffolds", "common_frameworks")  # of a start, beside methods


def describe_molecules(
    contents: Contents, evaluation: str, measured: Mapping[str, Grid], prefix: str
) -> Details:
    """Return the charts and tables on molecules for the page's section on one evaluation. `measured` maps
    each metric to its table; `prefix` makes the names of the charts unique on the page."""
    rows = contents.measured[contents.measured.evaluation == evaluation]
    properties = draw_properties(contents, evaluation, measured, prefix)
    reasons, fills = {}, {}
    if members := [table for table in measured.values() if table.about.group == "reasons"]:
        samples = int(rows.samples.max())
        fills = {table.label: charts.REASONS[table.metric] for table in members}
        reasons = {
            method: charts.reasons(members, method, samples, f"{prefix}-invalid-{name_file(method)}")
            for method in members[0].rows
        }
    return Details(
        {
            "training": legend(["training molecules"], f"{prefix}-training", lambda _: charts.TRAINING),
            "reasons": reasons,
            "legend": legend(fills, f"{prefix}-reasons", fills.__getitem__),
            "survivors": draw_survivors(contents, evaluation, measured, prefix),
            "start": compare_with_start(contents, evaluation, measured),
            "properties": properties,
            "guidance": describe_guidance(contents, evaluation, prefix),
            "nearest": describe_nearest(contents, evaluation),
        }
    )


def draw_survivors(
    contents: Contents, evaluation: str, measured: Mapping[str, Grid], prefix: str
) -> Picture | None:
    """Draw the share of samples that is left at each stage from valid to plausible; return None if
    plausible molecules were not counted. There is a line for each method, at its best number of steps, for
    held-out molecules and for controls. `measured` maps each metric to its table."""
    if not (plausible := measured.get("plausible")):
        return None
    best = {method: plausible.best(method)[1] for method in plausible.rows}
    stages = {stage: number for number, stage in enumerate(charts.STAGES)}
    rows = contents.metrics[contents.metrics.evaluation == evaluation]
    rows = rows[rows.metric.isin(stages) & (rows.nfe.isna() | (rows.nfe == rows.method.map(best)))]
    if plausible.real.empty:  # too few held-out molecules
        rows = rows[rows.method != REAL]
    shares = rows.assign(stage=rows.metric.map(stages), share=100 * rows.value / rows.samples)
    means = shares.groupby(["method", "stage"])[["share", "nfe"]].mean().reset_index()
    order = [*best, *dict.fromkeys(rows.method[rows.nfe.isna()])]
    means = pd.concat(means[means.method == method] for method in order)
    real = plausible.about.real
    return charts.survivors(means.replace({"method": {REAL: real}}), real, f"{prefix}-survivors")


def compare_with_start(
    contents: Contents, evaluation: str, measured: Mapping[str, Grid]
) -> dict[str, object] | None:
    """Compare fine-tuned methods with the model that they started from, at the largest number of steps.
    `measured` maps each metric to its table.

    Returns None if there is no such model. Otherwise returns a dict: `nfe` is the number of steps; `columns`
    names the start, the methods and, if they were measured, real data. Each of `rows` has a metric and its
    `shares`: texts in per cent of the samples, one for each column.
    """
    rows = contents.metrics[contents.metrics.evaluation == evaluation]
    start = rows[rows.method == START].set_index("metric")
    shown = [measured[name] for name in _KEPT if name in start.index and name in measured]
    if not shown:
        return None
    methods = [*shown[0].rows]
    real = [] if shown[0].real.empty else [shown[0].about.real]
    lines = []
    for table in shown:
        samples = table.frame.samples.max()
        values = [start.value[table.metric], *(table.rows[method][-1].mean for method in methods)]
        shares = [
            format_percent(value / samples)
            for value in (*values, *([table.real.value.mean()] if real else []))
        ]
        lines.append({"metric": table.metric, "label": table.about.label, "shares": shares})
    columns = ["its start", *methods, *real]
    return {"nfe": shown[0].columns[-1], "columns": columns, "rows": lines}


def draw_properties(
    contents: Contents, evaluation: str, measured: Mapping[str, Grid], prefix: str
) -> dict[int, list[dict[str, object]]]:
    """Draw the distributions of properties. Returns a list for each number of steps (NFE), the highest first.

    The list has a dict for each property: its `label`; the `picture`; `metric`, the name of the distance from
    the training molecules; and `distances`, which maps each method to that distance as text. `measured` maps
    each metric to its table; `prefix` begins the names of the drawings.
    """
    properties: dict[int, list[dict[str, object]]] = {}
    for nfe, methods in sorted(contents.part["properties"].get(evaluation, {}).items(), reverse=True):
        properties[nfe] = []
        for name, label in PROPERTIES.items():
            shown = [method for method in contents.methods if method in methods]
            counts = {method: methods[method][methods[method].property == name] for method in shown}
            picture = charts.histograms(counts, label, f"{prefix}-{name_file(label)}-nfe{nfe}")
            metric, distances = f"{name}_wasserstein", {}
            if (table := measured.get(metric)) and nfe in table.columns:
                index = table.columns.index(nfe)
                distances = {method: cells[index].text for method, cells in table.rows.items()}
            shape = {"label": label, "metric": metric, "picture": picture, "distances": distances}
            properties[nfe].append(shape)
    return properties


def describe_guidance(contents: Contents, evaluation: str, prefix: str) -> dict[str, object] | None:
    """Draw what guidance does in an evaluation that was repeated with several guidance weights. Returns None
    for other evaluations, and if samples in their class were not counted.

    Otherwise returns a dict: `condition` is what was asked for, as text; `trades` maps each metric that
    counts how well samples meet the condition, by its label, to a dict from the number of steps (NFE) to
    `charts.guidance`. `prefix` begins the names of the drawings.
    """
    weights = contents.experiment.repeated("guidances").get(evaluation, {})
    rows = contents.measured[contents.measured.evaluation.isin(list(weights))]
    if set(rows.metric).isdisjoint({"in_class", "nearest_in_class"}):
        return None
    conditions = contents.experiment.evaluations[evaluation].condition
    names = [condition.rpartition("=")[0] for condition in conditions]
    targets = ["in_class", *(f"{name}_in_class" for name in names), "nearest_in_class"]
    targets = [metric for metric in targets if metric in set(rows.metric)]
    rows = rows.assign(weight=rows.evaluation.map(weights), share=rows.value / rows.samples)
    means = rows.groupby(["nfe", "method", "weight", "metric"])["share"].mean().unstack().reset_index()
    trades = {
        METRICS[metric].label: {
            int(nfe): charts.guidance(
                points,
                metric,
                f"{','.join(conditions)}, {pluralise(int(nfe), 'step')}",
                f"{prefix}-guidance-{name_file(metric)}-nfe{int(nfe)}",
            )
            for nfe, points in means.groupby("nfe")
        }
        for metric in targets
    }
    return {"condition": ", ".join(conditions), "trades": trades}


def describe_nearest(contents: Contents, evaluation: str) -> dict[str, object] | None:
    """Tell how often the training molecule nearest to a sample is in the class that the sample was asked for,
    where classes are of columns of the user's table. Returns None if that was not measured.

    Otherwise returns a dict: `columns` are the columns that samples were asked for, and `nfe` is the largest
    number of steps. Each of `rows` has a method and shares of its valid samples as texts: those whose nearest
    molecule is in the class; the same at guidance 0, if that was measured (`ignored`); and the share expected
    by chance. `spread` says whether all classes of the columns were asked for.
    """
    rows = contents.measured[contents.measured.nfe.notna()]
    here = rows[rows.evaluation == evaluation]
    if "nearest_in_class" not in set(here.metric):
        return None
    weights = contents.experiment.repeated("guidances").get(evaluation, {})
    ignored = [name for name, weight in weights.items() if weight == 0 and name in set(rows.evaluation)]
    last = rows[rows.nfe == here.nfe.max()]
    means = last.groupby(["evaluation", "method", "metric"])["value"].mean().unstack()
    shares = means[["nearest_in_class", "nearest_by_chance"]].div(means["valid"].replace(0, np.nan), axis=0)
    wanted = [(name, "nearest_in_class") for name in (evaluation, *ignored)]
    wanted.append((evaluation, "nearest_by_chance"))
    asked = dict(text.rpartition("=")[::2] for text in contents.experiment.evaluations[evaluation].condition)
    columns = [name for name in own_columns(contents.experiment) if name in asked]
    return {
        "columns": columns,
        "nfe": int(here.nfe.max()),
        "ignored": bool(ignored),
        "spread": all(asked[name] == SPREAD for name in columns),
        "rows": [
            [method, *(format_percent(shares[metric].get((name, method), np.nan)) for name, metric in wanted)]
            for method in contents.methods
            if (evaluation, method) in shares.index
        ],
    }
