"""Arranges the metrics of each evaluation: main tables with charts, and groups of further tables."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pairflow.kinds import page_of
from pairflow.report import figures
from pairflow.report.contents import Contents
from pairflow.report.drawing import Legend, Picture, key, legend
from pairflow.report.grid import Grid, describe_scope
from pairflow.report.kind_page import Details
from pairflow.report.words import name_file


@dataclass(frozen=True)
class Group:
    """Tables under one title, and charts of some of them."""

    title: str
    tables: list[Grid]
    charts: list[Picture]


@dataclass(frozen=True)
class EvaluationBlock:
    """One evaluation on the page: its main tables with their charts, and groups of further metrics.

    `scope` says from which samples the metrics are computed, and `details` is what the kind of data adds.
    """

    name: str
    scope: str
    seeds: int
    legend: Legend
    main: Group
    groups: list[Group]
    details: Details

    @property
    def all_groups(self) -> list[Group]:
        return [self.main, *self.groups]

    @property
    def tables(self) -> list[Grid]:
        return [table for group in self.all_groups for table in group.tables]

    @property
    def pooled(self) -> bool:
        """Whether means are over several seeds."""
        return self.seeds > 1

    @property
    def spread(self) -> bool:
        """Whether any mean has a deviation."""
        return any(table.count > 1 for table in self.tables)


def evaluation_blocks(contents: Contents) -> list[EvaluationBlock]:
    """Make a block for each evaluation that has metrics."""
    return [_block(contents, name, name_file(name)) for name in contents.evaluations]


def _block(contents: Contents, name: str, prefix: str) -> EvaluationBlock:
    rows = contents.measured[contents.measured.evaluation == name]
    seeds = rows.seed.nunique()
    measured = contents.grids[name]
    tables = [_make_table(contents, grid, measured, seeds) for grid in measured]
    methods = [name for name in contents.methods if any(name in table.rows for table in tables)]
    keys = legend(methods, prefix, figures.contrast(methods))
    main, *groups = _groups(tables, contents.experiment.data.groups, prefix)
    if any(table.floor and table.about.chart for table in tables):
        keys.append((key(figures.FLOOR, f"{prefix}-floor"), tables[0].about.real))
    details = page_of(contents.experiment).make_details(contents, name, tables, prefix)
    return EvaluationBlock(name, describe_scope(rows), seeds, keys, main, groups, details)


def _make_table(contents: Contents, grid: Grid, others: list[Grid], seeds: int) -> Grid:
    """Return `grid` with methods and calls, for the page. Its label names the extractor if `others`, the
    tables of the evaluation, have its metric by several. `seeds` is the evaluation's number of seeds."""
    rivals = {other.extractor for other in others if other.metric == grid.metric}
    name = f"({grid.extractor})" * (len(rivals) > 1)
    return contents.add_calls(replace(grid, rival=name, all_seeds=seeds))


def _groups(tables: list[Grid], titles: Mapping[str, str], prefix: str) -> list[Group]:
    """Group the tables: the main tables first, even if there are none, then further groups with tables.

    `titles` has the title of each further group by its name in `Metric.group`; `prefix` begins the names of
    the charts.
    """
    groups = []
    for name, title in {"": "", **titles}.items():
        members = [table for table in tables if table.about.group == name]
        charts = [
            figures.quality(table, f"{prefix}-{name_file(table.label)}")
            for table in members
            if table.about.chart
        ]
        if members or not name:
            groups.append(Group(title, members, charts))
    return groups
