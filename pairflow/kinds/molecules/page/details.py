"""The part of the section on quality that only molecules have: tables, reasons, properties, speed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from pairflow.kinds.molecules.page import charts
from pairflow.kinds.molecules.page.guidance import GuidanceDetails, describe_guidance
from pairflow.kinds.molecules.page.speed import Speed, measure_speed
from pairflow.report.contents import Contents
from pairflow.report.drawing import Picture, swatch
from pairflow.report.grid import Grid
from pairflow.report.kind_page import Details
from pairflow.report.words import name_file

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
class MoleculeDetails(Details):
    """What was measured in an evaluation of molecules beyond valid, unique and novel."""

    training: Markup = field(default_factory=Markup)
    reasons: Reasons | None = None
    properties: dict[int, list[Property]] = field(default_factory=dict)
    speed: Speed | None = None
    guidance: GuidanceDetails | None = None

    def name_charts(self) -> Iterator[tuple[str, Picture]]:
        if self.reasons:
            for method, picture in self.reasons.charts.items():
                yield f"invalid-{name_file(method)}", picture
        for nfe, properties in self.properties.items():
            yield from ((f"{name_file(own.label)}-nfe{nfe}", own.picture) for own in properties)
        if self.speed:
            yield "speed", self.speed.picture


def describe_molecules(
    contents: Contents, evaluation: str, measured: Mapping[str, Grid], prefix: str, complete: bool
) -> MoleculeDetails:
    """The details of one evaluation from its tables; `prefix` tells its drawings apart from others."""
    rows = contents.measured[contents.measured.evaluation == evaluation]
    properties = _properties(contents, evaluation, measured, prefix)
    speed = measure_speed(contents, evaluation, rows, prefix, complete)
    shown = [own.metric for shapes in properties.values() for own in shapes]
    return MoleculeDetails(
        metrics=[*shown, *(table.metric for table in speed.tables)] if speed else shown,
        tables={"Molecules per second": speed.tables} if speed else {},
        training=swatch(charts.TRAINING, f"{prefix}-training"),
        reasons=_reasons(measured, int(rows.samples.max()), prefix),
        properties=properties,
        speed=speed,
        guidance=describe_guidance(contents, evaluation, PROPERTIES, prefix),
    )


def _reasons(measured: Mapping[str, Grid], samples: int, prefix: str) -> Reasons | None:
    members = [table for table in measured.values() if table.about.group == "reasons"]
    if not members:
        return None
    by_method = {
        method: charts.reasons(members, method, samples, f"{prefix}-reasons{i}")
        for i, method in enumerate(members[0].rows)
    }
    legend = [
        (swatch(charts.REASONS[table.metric], f"{prefix}-{table.metric}"), table.label) for table in members
    ]
    return Reasons(by_method, legend)


def _properties(
    contents: Contents, evaluation: str, measured: Mapping[str, Grid], prefix: str
) -> dict[int, list[Property]]:
    """NFE -> its properties, the most steps first."""
    properties: dict[int, list[Property]] = {}
    for nfe, methods in sorted(contents.part.properties.get(evaluation, {}).items(), reverse=True):
        properties[nfe] = []
        for name, label in PROPERTIES.items():
            metric = f"{name}_wasserstein"
            counts = {
                method: methods[method][methods[method].property == name]
                for method in contents.methods
                if method in methods
            }
            picture = charts.histograms(counts, label, f"{prefix}-{name}{nfe}")
            distances = _distances(measured[metric], nfe) if metric in measured else {}
            properties[nfe].append(Property(label, metric, picture, distances))
    return properties


def _distances(table: Grid, nfe: int) -> dict[str, str]:
    """Method -> its mean distance at one NFE, as it is printed."""
    if nfe not in table.columns:
        return {}
    place = table.columns.index(nfe)
    return {method: cells[place].text for method, cells in table.rows.items()}
