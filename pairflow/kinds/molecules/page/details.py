"""The part of the section on quality that only molecules have: tables, reasons, properties, speed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from pairflow.kinds.molecules.page.guidance import GuidanceDetails, describe_guidance
from pairflow.report import figures, tables
from pairflow.report.costs import YIELDS, sampling_times, sampling_yields
from pairflow.report.drawing import Picture, swatch
from pairflow.report.experiment.contents import Contents
from pairflow.report.tables import Table

PROPERTIES = {"qed": "QED", "sa": "SA score", "logp": "logP", "weight": "molecular weight (g/mol)"}


@dataclass(frozen=True)
class Reasons:
    """A chart of each method's invalid samples, and the legend of the reasons."""

    charts: dict[str, Picture]
    legend: list[tuple[Markup, str]]


@dataclass(frozen=True)
class Property:
    """Distributions of one property at one NFE, and every method's distance from the training molecules.

    `metric` is that distance.
    """

    label: str
    metric: str
    picture: Picture
    distances: dict[str, str]


@dataclass(frozen=True)
class Speed:
    """Valid molecules against time: a chart, the tables of molecules per second, and the devices."""

    picture: Picture
    tables: list[Table]
    devices: str


@dataclass(frozen=True)
class MoleculeDetails:
    """What was measured in an evaluation of molecules beyond valid, unique and novel."""

    training: Markup
    reasons: Reasons | None = None
    properties: dict[int, list[Property]] = field(default_factory=dict)
    speed: Speed | None = None
    guidance: GuidanceDetails | None = None


def describe_molecules(
    contents: Contents, evaluation: str, measured: Mapping[str, Table], prefix: str
) -> MoleculeDetails:
    """The details of one evaluation from its tables; `prefix` tells its drawings apart from others."""
    rows = contents.measured[contents.measured.evaluation == evaluation]
    return MoleculeDetails(
        reasons=_reasons(measured, int(rows.samples.max()), prefix),
        properties=_properties(contents, evaluation, measured, prefix),
        training=swatch(figures.TRAINING, f"{prefix}-training"),
        speed=_speed(contents, evaluation, rows, prefix),
        guidance=describe_guidance(contents, evaluation, PROPERTIES, prefix),
    )


def _reasons(measured: Mapping[str, Table], samples: int, prefix: str) -> Reasons | None:
    members = [table for table in measured.values() if table.about.group == "reasons"]
    if not members:
        return None
    charts = {
        method: figures.reasons(members, method, samples, f"{prefix}-reasons{i}")
        for i, method in enumerate(members[0].rows)
    }
    legend = [
        (swatch(figures.REASONS[table.metric], f"{prefix}-{table.metric}"), table.label) for table in members
    ]
    return Reasons(charts, legend)


def _properties(
    contents: Contents, evaluation: str, measured: Mapping[str, Table], prefix: str
) -> dict[int, list[Property]]:
    """NFE -> its properties, the most steps first."""
    properties: dict[int, list[Property]] = {}
    for nfe, methods in sorted(contents.properties.get(evaluation, {}).items(), reverse=True):
        properties[nfe] = []
        for name, label in PROPERTIES.items():
            metric = f"{name}_wasserstein"
            counts = {
                method: methods[method][methods[method].property == name]
                for method in contents.methods
                if method in methods
            }
            picture = figures.histograms(counts, label, f"{prefix}-{name}{nfe}")
            distances = _distances(measured[metric], nfe) if metric in measured else {}
            properties[nfe].append(Property(label, metric, picture, distances))
    return properties


def _distances(table: Table, nfe: int) -> dict[str, str]:
    """Method -> its mean distance at one NFE, as it is printed."""
    if nfe not in table.columns:
        return {}
    place = table.columns.index(nfe)
    return {method: cells[place].text for method, cells in table.rows.items()}


def _speed(contents: Contents, evaluation: str, rows: pd.DataFrame, prefix: str) -> Speed | None:
    """Molecules per second of the step `sample`, and its wall time per trial."""
    yields = sampling_yields(rows, contents.timings)
    if yields.empty:
        return None
    summary = tables.summarise(yields)
    shown = [name for name in YIELDS.values() if name in set(summary.metric)]
    if contents.complete:  # a novel molecule breaks the rules of the data, and is no yield
        shown = [name for name in shown if name != "novel_per_second"]
    made = [
        contents.add_calls(tables.make_table(summary, evaluation, name, contents.methods)) for name in shown
    ]
    keys = ["method", "nfe", "seed"]
    valid = rows[rows.metric == "valid"].groupby(keys)["value"].agg(["mean", "count"]).reset_index()
    times = sampling_times(contents.timings)
    times = times[times.evaluation == evaluation]
    both = valid.merge(times, on=keys)
    per_trial = both.assign(valid=both["mean"], seconds=both.seconds / both["count"])
    means = per_trial.groupby(["method", "nfe"])[["seconds", "valid"]].mean().reset_index()
    count = contents.experiment.count_calls
    means["calls"] = [count(row.method, int(row.nfe), evaluation) for row in means.itertuples()]
    lines = {method: means[means.method == method] for method in made[0].rows}
    return Speed(
        figures.trade(lines, int(rows.samples.max()), evaluation, f"{prefix}-trade"),
        made,
        " and ".join(sorted(both.device.dropna().unique())) or "unknown device",
    )
