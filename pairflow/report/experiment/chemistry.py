"""What the section on quality shows of molecules alone: groups of tables, reasons, properties, speed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from pairflow.report import figures, interactive, tables
from pairflow.report.drawing import Picture, swatch
from pairflow.report.experiment.contents import Contents

PROPERTIES = {"qed": "QED", "sa": "SA score", "logp": "logP", "weight": "molecular weight (g/mol)"}

_NOTES = {
    "unique_strict": (
        "Unique and novel, strict: the same counts on canonical SMILES of samples and data set, so that"
        " a molecule written in two ways counts once, and a known one in another spelling is not novel."
    ),
    "invalid_empty": "Empty: no token but padding.",
    "invalid_syntax": (
        "Syntax: no SMILES, as of a branch that stays open, a bond without an atom, a mask that stayed."
    ),
    "invalid_ring": (
        "Ring closure: a SMILES but for a ring that stays open, or that closes onto its own atom or "
        "between two that are bonded already."
    ),
    "invalid_valence": "Valence: an atom with more bonds than it can have.",
    "invalid_kekulize": (
        "Aromaticity: aromatic atoms outside of a ring, or without single and double bonds that fit."
    ),
    "connected": "Connected: valid samples in one piece.",
    "scaffolds": (
        "Scaffolds: distinct Bemis–Murcko scaffolds (rings and what links them) among the valid; novel "
        "are those that no training molecule has. They grow with the number of valid molecules."
    ),
    "internal_diversity": (
        "Internal diversity: 1 − mean Tanimoto similarity over pairs of distinct valid molecules "
        "(Morgan fingerprints, radius 2, 2,048 bits)."
    ),
    "nn_similarity": (
        "Similarity to the nearest training molecule: the largest Tanimoto similarity to any of them, "
        "mean over distinct valid molecules. 1 is a copy, much less than real molecules have is another"
        " chemistry: none is marked as best."
    ),
    "qed_wasserstein": "QED: drug-likeness, 0 to 1 (Bickerton et al. 2012).",
    "sa_wasserstein": "SA score: synthetic accessibility, 1 (easy) to 10 (Ertl and Schuffenhauer 2009).",
    "logp_wasserstein": (
        "logP: octanol–water partition coefficient by atom contributions (Wildman and Crippen 1999)."
    ),
    "weight_wasserstein": (
        "All four are Wasserstein-1 distances, in the property’s unit, between distinct valid samples "
        "and distinct training molecules (20,000 of them at most, drawn at random). Few valid molecules"
        " alone make it larger."
    ),
    "fcd": (
        "FCD: Fréchet ChemNet Distance (Preuer et al. 2018) from all valid samples of a trial to 10,000"
        " training molecules at most; it compares at equal numbers of valid samples alone."
    ),
}
_GROUPS = {
    "strict": "Unique and novel, counted strictly",
    "structure": "Pieces, scaffolds, similarity",
    "properties": "Distance of properties from the training set’s",
    "reasons": "Why samples are invalid",
}


@dataclass(frozen=True)
class Group:
    """Tables that are shown together, what they are called and what their numbers mean."""

    title: str
    tables: list[tables.Table]
    notes: list[str]


@dataclass(frozen=True)
class Reasons:
    """Per method the chart of its invalid samples; fills and names of the reasons."""

    charts: dict[str, Picture]
    legend: list[tuple[Markup, str]]


@dataclass(frozen=True)
class Property:
    """Distributions of one property at one number of steps, and every method's distance from training."""

    label: str
    nfe: int
    picture: Picture
    distances: dict[str, str]


@dataclass(frozen=True)
class Speed:
    """Valid molecules against time: a chart, its data, the table of molecules per second, and the devices."""

    picture: Picture
    plot: interactive.Plot
    table: tables.Table
    devices: str


@dataclass(frozen=True)
class Chemistry:
    """What an evaluation of molecules has beyond valid, unique and novel, where it was measured."""

    groups: list[Group] = field(default_factory=list)
    reasons: Reasons | None = None
    properties: list[Property] = field(default_factory=list)
    training: Markup | None = None
    speed: Speed | None = None


def chemistry(contents: Contents, evaluation: str, prefix: str) -> Chemistry:
    """Of one evaluation; `prefix` sets its drawings apart on the page."""
    summary = tables.summarise(contents.measured)

    def found(metric: str) -> tables.Table:
        return tables.table(summary, evaluation, metric, contents.methods)

    rows = contents.measured[contents.measured.evaluation == evaluation]
    return Chemistry(
        groups=_groups(found),
        reasons=_reasons(found, int(rows.samples.max()), prefix),
        properties=_properties(contents, evaluation, found, prefix),
        training=swatch(figures.TRAINING, f"{prefix}-training"),
        speed=_speed(contents, evaluation, rows, prefix),
    )


def _groups(found: Callable[[str], tables.Table]) -> list[Group]:
    groups = []
    for name, title in _GROUPS.items():
        shown = [table for metric in tables.named("molecules", name) if (table := found(metric)).count]
        notes = [_NOTES[table.metric] for table in shown if table.metric in _NOTES]
        if shown:
            groups.append(Group(title, shown, notes))
    return groups


def _reasons(found: Callable[[str], tables.Table], samples: int, prefix: str) -> Reasons | None:
    shown = [table for metric in tables.named("molecules", "reasons") if (table := found(metric)).count]
    if not shown:
        return None
    charts = {
        method: figures.reasons(shown, method, samples, f"{prefix}-reasons{i}")
        for i, method in enumerate(shown[0].rows)
    }
    legend = [
        (swatch(figures.REASONS[table.metric], f"{prefix}-{table.metric}"), table.label) for table in shown
    ]
    return Reasons(charts, legend)


def _properties(
    contents: Contents, evaluation: str, found: Callable[[str], tables.Table], prefix: str
) -> list[Property]:
    shown = []
    for nfe, methods in sorted(contents.properties.get(evaluation, {}).items()):
        for name, label in PROPERTIES.items():
            counts = {
                method: methods[method][methods[method].property == name]
                for method in contents.methods
                if method in methods
            }
            picture = figures.histogram(counts, label, f"{prefix}-{name}{nfe}")
            shown.append(Property(label, nfe, picture, _distances(found(f"{name}_wasserstein"), nfe)))
    return shown


def _distances(table: tables.Table, nfe: int) -> dict[str, str]:
    """Method -> its mean distance at a number of steps, as it is printed."""
    if nfe not in table.columns:
        return {}
    place = table.columns.index(nfe)
    return {method: cells[place].text for method, cells in table.rows.items()}


def _speed(contents: Contents, evaluation: str, rows: pd.DataFrame, prefix: str) -> Speed | None:
    """From the wall time of the step `sample`, loading of the model included."""
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
    table = tables.table(tables.summarise(speeds), evaluation, "valid_per_second", contents.methods)
    per_trial = both.assign(valid=both.valid / both.trials, seconds=both.seconds / both.trials)
    means = per_trial.groupby(["method", "nfe"])[["seconds", "valid"]].mean().reset_index()
    lines = {method: means[means.method == method] for method in table.rows}
    samples = int(both.samples.max())
    return Speed(
        figures.trade(lines, samples, f"{prefix}-trade"),
        interactive.trade(lines, samples, evaluation),
        table,
        " and ".join(sorted(both.device.dropna().unique())) or "unknown device",
    )
