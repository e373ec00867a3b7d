"""The section on quality: charts and tables per evaluation, and for images how they were measured."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pairflow.report import figures, tables
from pairflow.report.drawing import Legend, Picture, legend
from pairflow.report.experiment.chemistry import MoleculeDetails, describe_molecules
from pairflow.report.experiment.contents import NOTES, Contents
from pairflow.report.stats import Values, group_by_seed
from pairflow.report.tables import Cell, Metric, Table
from pairflow.report.words import REFERENCES
from pairflow.training.choice import leading_evaluation

_EXTRACTORS = {"classifier": "the classifier", "inception": "Inception", "dinov2": "DINOv2"}


@dataclass(frozen=True)
class EvaluationBlock:
    """One evaluation: charts and tables of its metrics; `scope` says which samples they are counted from.

    `metric_tables` have charts, `plain` ones do not. `notes` say what was measured, `floors` what real data
    show. `deficient` names the extractors with more features than there are samples.
    """

    name: str
    scope: str
    pooled: bool
    legend: Legend
    charts: list[Picture]
    metric_tables: list[Table]
    plain: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    floors: list[str] = field(default_factory=list)
    deficient: list[str] = field(default_factory=list)
    chemistry: MoleculeDetails | None = None

    @property
    def spread(self) -> bool:
        """Whether any mean has a deviation."""
        return any(table.count > 1 for table in [*self.metric_tables, *self.plain])

    @property
    def labels(self) -> list[str]:
        """Labels of the metrics that were measured."""
        return [table.about.label for table in [*self.metric_tables, *self.plain]]


@dataclass(frozen=True, eq=False)
class Panel:
    """Metric rows that compare with one another: one evaluation, metric, reference and extractor.

    `real` are the matching rows of real data against real data. Reference and extractor may be empty; those
    of molecules are.
    """

    evaluation: str
    metric: str
    reference: str
    extractor: str
    rows: pd.DataFrame
    real: pd.DataFrame

    @property
    def about(self) -> Metric:
        return tables.METRICS[self.metric]

    @property
    def beside(self) -> str:
        return self.about.against.format(REFERENCES[self.reference]) if self.reference else ""

    @property
    def floor(self) -> Cell | None:
        values = self.real.value
        return None if values.empty else Cell(values.mean(), values.std(), len(values))

    @property
    def samples(self) -> str:
        return tables.list_counts(self.rows.samples)

    @cached_property
    def values(self) -> dict[tuple[str, int], Values]:
        """(method, NFE) -> its values."""
        groups = self.rows.groupby(["method", "nfe"], sort=False)
        return {(str(method), int(nfe)): group_by_seed(rows) for (method, nfe), rows in groups}


def evaluation_blocks(contents: Contents) -> list[EvaluationBlock]:
    """A block for each evaluation that has metrics."""
    make = _molecule_block if contents.modality == "molecules" else _panel_block
    blocks = []
    for i, name in enumerate(contents.evaluations):
        rows = contents.measured[contents.measured.evaluation == name]
        parts = make(contents, rows, name, f"evaluation{i}")
        scope, pooled = tables.describe_scope(rows, name), _count_seeds(rows) > 1
        blocks.append(EvaluationBlock(name=name, scope=scope, pooled=pooled, **parts))
    return blocks


def panels(contents: Contents, evaluation: str) -> list[Panel]:
    """The panels of an evaluation that have values, in the order of the page."""
    keys = ["metric", "reference", "extractor"]
    rows, real = (
        part.dropna(subset="value").fillna(dict.fromkeys(keys, ""))
        for part in (contents.measured, contents.real)
    )
    rows = rows[rows.evaluation == evaluation]
    if contents.modality == "molecules":
        rows, real = (part.assign(reference="", extractor="") for part in (rows, real))
    floors = dict(iter(real.groupby(keys)))
    names = tables.list_metrics(contents.modality)
    order = [(name, reference) for name in names for reference in (*REFERENCES, "")]
    measured = []
    for key, group in rows.groupby(keys, sort=True):
        metric, reference, extractor = map(str, key)
        if (metric, reference) in order:
            floor = floors.get(key, real.iloc[:0])
            own = floor[floor.evaluation == evaluation]
            own = floor if own.empty else own  # those of any evaluation serve where it has none
            measured.append(Panel(evaluation, metric, reference, extractor, group, own))
    return sorted(measured, key=lambda panel: order.index((panel.metric, panel.reference)))


def leading_panel(contents: Contents) -> Panel | None:
    """The first metric with a headline, in the leading one of the evaluations that have values of one."""
    leading: dict[str, Panel] = {}
    for name in contents.evaluations:
        for panel in panels(contents, name):
            if panel.about.headline:
                leading.setdefault(name, panel)
    return leading[leading_evaluation(leading)] if leading else None


def _molecule_block(contents: Contents, rows: pd.DataFrame, name: str, prefix: str) -> dict[str, Any]:
    summary = tables.summarise(contents.measured)
    candidates = (
        tables.make_table(summary, name, metric, contents.methods, complete=contents.complete)
        for metric in tables.list_metrics("molecules", "")
    )
    measured = [table for table in candidates if table.count]
    samples = f"{int(rows.samples.max()):,}"
    return {
        "legend": legend(_methods(contents, measured), prefix),
        "charts": [figures.quality(table, samples, f"{prefix}-{table.metric}") for table in measured],
        "metric_tables": measured,
        "chemistry": describe_molecules(contents, name, prefix),
    }


def _panel_block(contents: Contents, rows: pd.DataFrame, name: str, prefix: str) -> dict[str, Any]:
    measured = panels(contents, name)
    by_panel = {panel: _make_table(contents, panel, measured, _count_seeds(rows)) for panel in measured}
    charted = {panel: table for panel, table in by_panel.items() if panel.about.chart}
    keys = legend(_methods(contents, by_panel.values()), prefix)
    floors = [
        f"{table.label} {table.floor.text} (from {tables.list_counts(panel.real.samples)})"
        for panel, table in charted.items()
        if table.floor
    ]
    if floors:
        keys.add(figures.FLOOR, measured[0].about.real, f"{prefix}-floor")
    deficient = rows[(rows.metric == "rank_deficient") & (rows.value > 0)].extractor.dropna()
    charts = enumerate(charted.items())
    return {
        "legend": keys,
        "charts": [figures.quality(own, panel.samples, f"{prefix}-panel{i}") for i, (panel, own) in charts],
        "metric_tables": list(charted.values()),
        "plain": [table for panel, table in by_panel.items() if not panel.about.chart],
        "notes": _once(_explain(contents, panel) for panel in measured),
        "floors": floors,
        "deficient": _once(name_extractor(extractor, contents) for extractor in deficient),
    }


def _count_seeds(rows: pd.DataFrame) -> int:
    return rows.dropna(subset="value").seed.nunique()


def _make_table(contents: Contents, panel: Panel, others: list[Panel], seeds: int) -> Table:
    """A panel's table, which names its extractor where another panel has the same metric by another one."""
    rivals = {other.extractor for other in others if other.metric == panel.metric}
    beside = f"{panel.beside} ({panel.extractor})" if len(rivals) > 1 else panel.beside
    return tables.make_table(
        tables.summarise(panel.rows).assign(all_seeds=seeds),
        panel.evaluation,
        panel.metric,
        contents.methods,
        beside,
        panel.floor,
        panel.reference,
        panel.extractor,
    )


def _methods(contents: Contents, measured: Collection[Table]) -> list[str]:
    return [method for method in contents.methods if any(method in table.rows for table in measured)]


def _explain(contents: Contents, panel: Panel) -> str:
    meaning = NOTES[contents.modality][panel.metric].format(name_extractor(panel.extractor, contents))
    return f"{panel.about.label}, from {panel.samples} samples: {meaning}."


def name_extractor(extractor: str, contents: Contents) -> str:
    """`classifier-1a2b3c4d` in words, with its accuracy where that is known."""
    kind, _, weights = extractor.partition("-")
    name = f"{_EXTRACTORS.get(kind, kind)} {weights}".strip()
    accuracy = contents.accuracies.get(extractor, np.nan)
    return f"{name} (accuracy {100 * accuracy:.1f} %)" if np.isfinite(accuracy) else name


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
