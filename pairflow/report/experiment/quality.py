"""The measurements of each evaluation: a table and charts, groups of further tables, how they were made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pairflow.kinds import kind_of
from pairflow.report import figures, tables
from pairflow.report.contents import Contents
from pairflow.report.drawing import Legend, Picture, legend
from pairflow.report.pages import page_of
from pairflow.report.panels import Panel, panels
from pairflow.report.tables import Table


@dataclass(frozen=True)
class Group:
    """Tables that stand together under a title, and the charts of those that have one.

    `floors` say what real data show in the charts.
    """

    title: str
    tables: list[Table]
    charts: list[Picture]
    floors: list[str]


@dataclass(frozen=True)
class EvaluationBlock:
    """One evaluation: its main tables with their charts, and the groups of the other metrics.

    `scope` says which samples they are counted from, and `details` are what the kind of data adds.
    """

    name: str
    scope: str
    seeds: int
    legend: Legend
    main: Group
    groups: list[Group]
    details: Any

    @property
    def all_groups(self) -> list[Group]:
        return [self.main, *self.groups]

    @property
    def tables(self) -> list[Table]:
        return [table for group in self.all_groups for table in group.tables]

    @property
    def pooled(self) -> bool:
        """Whether means are over several seeds."""
        return self.seeds > 1

    @property
    def tested(self) -> bool:
        """Whether a test says what is in bold."""
        return any(table.tested for table in self.tables)

    @property
    def unequal_calls(self) -> bool:
        """Whether methods make different numbers of calls at equal NFE."""
        return any(len(table.call_rows) > 1 for table in self.main.tables)

    @property
    def spread(self) -> bool:
        """Whether any mean has a deviation."""
        return any(table.count > 1 for table in self.tables)

    @property
    def labels(self) -> list[str]:
        """Labels of the metrics that were measured."""
        return [table.about.label for table in self.tables]


def evaluation_blocks(contents: Contents) -> list[EvaluationBlock]:
    """A block for each evaluation that has metrics."""
    return [_block(contents, name, f"evaluation{i}") for i, name in enumerate(contents.own_evaluations)]


def _block(contents: Contents, name: str, prefix: str) -> EvaluationBlock:
    rows = contents.measured[contents.measured.evaluation == name]
    page = page_of(contents.experiment)
    measured = panels(contents.metrics, contents.experiment, name)
    seeds = _count_seeds(rows)
    by_panel = {panel: _make_table(contents, panel, measured, seeds) for panel in measured}
    methods = [name for name in contents.methods if any(name in table.rows for table in by_panel.values())]
    keys = legend(methods, prefix, figures.contrast(methods))
    main, *groups = _groups(by_panel, kind_of(contents.experiment.data).groups, prefix)
    if any(group.floors for group in [main, *groups]):
        keys.add(figures.FLOOR, measured[0].about.real, f"{prefix}-floor")
    return EvaluationBlock(
        name=name,
        scope=tables.describe_scope(rows, name),
        seeds=seeds,
        legend=keys,
        main=main,
        groups=groups,
        details=page.make_details(contents, name, by_panel, prefix),
    )


def _groups(by_panel: dict[Panel, Table], titles: Mapping[str, str], prefix: str) -> list[Group]:
    """The main tables, even if there are none, and the other groups that have any."""
    groups = []
    for name, title in {"": "", **titles}.items():
        own = {panel: table for panel, table in by_panel.items() if panel.about.group == name}
        charted = [(panel, table) for panel, table in own.items() if panel.about.chart]
        charts = [
            figures.quality(table, panel.rows.samples, f"{prefix}-{name or 'main'}{i}")
            for i, (panel, table) in enumerate(charted)
        ]
        floors = [
            f"{table.label} {' '.join(filter(None, [table.floor.text, table.floor.spread]))} "
            f"(from {tables.list_counts(panel.real.samples)})"
            for panel, table in charted
            if table.floor
        ]
        if own or not name:
            groups.append(Group(title, [*own.values()], charts, floors))
    return groups


def _count_seeds(rows: pd.DataFrame) -> int:
    return rows.dropna(subset="value").seed.nunique()


def _make_table(contents: Contents, panel: Panel, others: list[Panel], seeds: int) -> Table:
    """A panel's table, which names its extractor where another panel has the same metric by another one."""
    rivals = {other.extractor for other in others if other.metric == panel.metric}
    name = page_of(contents.experiment).name_rival(panel.extractor)
    beside = f"{panel.beside} ({name})".strip() if len(rivals) > 1 else panel.beside
    table = tables.make_table(
        tables.summarise(panel.rows).assign(all_seeds=seeds),
        panel.evaluation,
        panel.metric,
        panel.about,
        contents.methods,
        beside,
        panel.floor,
        panel.reference,
        panel.extractor,
    )
    return contents.add_calls(table)
