"""The part of the section on quality that only molecules have: tables, reasons, properties, speed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from pairflow.report import figures, tables
from pairflow.report.drawing import Picture, swatch
from pairflow.report.experiment.contents import NOTES, Contents
from pairflow.report.tables import Table

PROPERTIES = {"qed": "QED", "sa": "SA score", "logp": "logP", "weight": "molecular weight (g/mol)"}
_GROUPS = {
    "structure": "Pieces, scaffolds, similarity",
    "properties": "Distance of properties from the training set’s",
    "reasons": "Why samples are invalid",
    "spellings": "Spellings, as the paper counts",
}


@dataclass(frozen=True)
class Group:
    """Tables that are shown together, their title, and notes that say what the numbers mean."""

    title: str
    tables: list[Table]
    notes: list[str]


@dataclass(frozen=True)
class Reasons:
    """A chart of each method's invalid samples, and the legend of the reasons."""

    charts: dict[str, Picture]
    legend: list[tuple[Markup, str]]


@dataclass(frozen=True)
class Property:
    """Distributions of one property at one NFE, and every method's distance from the training molecules."""

    label: str
    nfe: int
    picture: Picture
    distances: dict[str, str]


@dataclass(frozen=True)
class Speed:
    """Valid molecules against time: a chart, the table of molecules per second, and the devices."""

    picture: Picture
    table: Table
    devices: str


@dataclass(frozen=True)
class MoleculeDetails:
    """What was measured in an evaluation of molecules beyond valid, unique and novel."""

    groups: list[Group] = field(default_factory=list)
    reasons: Reasons | None = None
    properties: list[Property] = field(default_factory=list)
    training: Markup | None = None
    speed: Speed | None = None


def describe_molecules(contents: Contents, evaluation: str, prefix: str) -> MoleculeDetails:
    """The details of one evaluation; `prefix` tells its drawings apart from others on the page."""
    summary = tables.summarise(contents.measured)

    def table_for(metric: str) -> Table:
        return tables.make_table(summary, evaluation, metric, contents.methods, complete=contents.complete)

    rows = contents.measured[contents.measured.evaluation == evaluation]
    return MoleculeDetails(
        groups=_groups(table_for),
        reasons=_reasons(table_for, int(rows.samples.max()), prefix),
        properties=_properties(contents, evaluation, table_for, prefix),
        training=swatch(figures.TRAINING, f"{prefix}-training"),
        speed=_speed(contents, evaluation, rows, prefix),
    )


def _measured_tables(table_for: Callable[[str], Table], group: str) -> list[Table]:
    """The tables of a group of metrics that have values."""
    return [table for table in map(table_for, tables.list_metrics("molecules", group)) if table.count]


def _groups(table_for: Callable[[str], Table]) -> list[Group]:
    groups, meanings = [], NOTES["molecules"]
    for name, title in _GROUPS.items():
        if members := _measured_tables(table_for, name):
            notes = [meanings[table.metric] for table in members if table.metric in meanings]
            groups.append(Group(title, members, notes))
    return groups


def _reasons(table_for: Callable[[str], Table], samples: int, prefix: str) -> Reasons | None:
    members = _measured_tables(table_for, "reasons")
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
    contents: Contents, evaluation: str, table_for: Callable[[str], Table], prefix: str
) -> list[Property]:
    properties = []
    for nfe, methods in sorted(contents.properties.get(evaluation, {}).items()):
        for name, label in PROPERTIES.items():
            counts = {
                method: methods[method][methods[method].property == name]
                for method in contents.methods
                if method in methods
            }
            picture = figures.histogram(counts, label, f"{prefix}-{name}{nfe}")
            distances = _distances(table_for(f"{name}_wasserstein"), nfe)
            properties.append(Property(label, nfe, picture, distances))
    return properties


def _distances(table: Table, nfe: int) -> dict[str, str]:
    """Method -> its mean distance at one NFE, as it is printed."""
    if nfe not in table.columns:
        return {}
    place = table.columns.index(nfe)
    return {method: cells[place].text for method, cells in table.rows.items()}


def _speed(contents: Contents, evaluation: str, rows: pd.DataFrame, prefix: str) -> Speed | None:
    """Speed by the wall time of the step `sample`, which includes loading the model."""
    timings = contents.timings
    if not {"seed", "evaluation", "nfe"} <= set(timings):
        return None
    keys = ["method", "nfe", "seed"]
    times = timings[timings.step == "sample"].dropna(subset=["seconds"])
    times = times[times.evaluation == evaluation]
    valid = (
        rows[rows.metric == "valid"]
        .groupby(keys)
        .agg(valid=("value", "sum"), trials=("value", "count"), samples=("samples", "max"))
    )
    both = valid.reset_index().merge(times[[*keys, "seconds", "device"]], on=keys)
    if both.empty:
        return None
    speeds = both[keys].assign(
        evaluation=evaluation, metric="valid_per_second", value=both.valid / both.seconds
    )
    table = tables.make_table(tables.summarise(speeds), evaluation, "valid_per_second", contents.methods)
    per_trial = both.assign(valid=both.valid / both.trials, seconds=both.seconds / both.trials)
    means = per_trial.groupby(["method", "nfe"])[["seconds", "valid"]].mean().reset_index()
    lines = {method: means[means.method == method] for method in table.rows}
    samples = int(both.samples.max())
    return Speed(
        figures.trade(lines, samples, evaluation, f"{prefix}-trade"),
        table,
        " and ".join(sorted(both.device.dropna().unique())) or "unknown device",
    )
