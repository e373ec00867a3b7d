"""The section on quality: charts and tables per evaluation, and of images what they were measured with."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from pairflow.report import figures, interactive, tables
from pairflow.report.drawing import Picture
from pairflow.report.experiment.chemistry import Chemistry, chemistry
from pairflow.report.experiment.contents import Contents
from pairflow.report.legends import Legend, legend

_REFERENCES = {"train": "training", "test": "test", "": ""}
_MEANING = {
    "fid": "Fréchet distance on features of {}",
    "fd": "Fréchet distance on features of {}, not FID",
    "kid": "kernel distance on features of {}, which around 0 may be negative",
    "kd": "kernel distance on features of {}, not KID; around 0 it may be negative",
    "is": "Inception Score by {}",
    "nn_l2": "mean distance of a sample to the nearest image, over pixel values of 0 to 255",
    "nn_cosine": "mean cosine of a sample and the most similar image, on features of {}",
    "nn_copies": "share of samples that equal an image, pixel by pixel",
}
_EXTRACTORS = {"classifier": "the classifier", "inception": "Inception", "dinov2": "DINOv2"}


@dataclass(frozen=True)
class Block:
    """One evaluation: charts and tables of its metrics, what they are counted from.

    `plots` are the charts as data, one for one; `plain` tables have no charts. `notes` say what was measured,
    `floors` what real data have; `deficient` are the extractors that have more features than there are
    samples; `chemistry` is of molecules alone.
    """

    name: str
    scope: str
    pooled: bool
    legend: Legend
    charts: list[Picture]
    plots: list[interactive.Plot]
    tables: list[tables.Table]
    plain: list[tables.Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    floors: list[str] = field(default_factory=list)
    deficient: list[str] = field(default_factory=list)
    chemistry: Chemistry | None = None

    @property
    def spread(self) -> bool:
        """Whether any mean has a deviation."""
        return any(table.count > 1 for table in [*self.tables, *self.plain])

    @property
    def labels(self) -> list[str]:
        """Of the metrics that there are."""
        return [tables.METRICS[table.metric].label for table in [*self.tables, *self.plain]]


@dataclass(frozen=True, eq=False)
class Panel:
    """Image metric rows that compare: one metric of one evaluation, one reference and extractor, or none.

    `real` are the rows of real data against real data that belong to it.
    """

    metric: str
    reference: str
    extractor: str
    rows: pd.DataFrame
    real: pd.DataFrame

    @property
    def about(self) -> tables.Metric:
        return tables.METRICS[self.metric]

    @property
    def beside(self) -> str:
        return self.about.against.format(_REFERENCES[self.reference]) if self.reference else ""

    @property
    def floor(self) -> tables.Cell | None:
        found = self.real.value
        return None if found.empty else tables.Cell(found.mean(), found.std(), len(found))

    @property
    def samples(self) -> str:
        return tables.numbers(self.rows.samples)


def blocks(contents: Contents) -> list[Block]:
    """One per evaluation that has metrics."""
    make = _image_block if contents.modality == "images" else _molecule_block
    return [make(contents, name, f"evaluation{i}") for i, name in enumerate(contents.evaluations)]


def panels(contents: Contents, evaluation: str) -> list[Panel]:
    """The panels of an evaluation that have values, in the order of the page."""
    keys = ["metric", "reference", "extractor"]
    rows, real = (
        part.dropna(subset="value").fillna(dict.fromkeys(keys, ""))
        for part in (contents.measured, contents.real)
    )
    rows = rows[rows.evaluation == evaluation]
    found = [Panel(*key, group, _like(real, key, evaluation)) for key, group in rows.groupby(keys, sort=True)]
    order = [(name, reference) for name in tables.named("images") for reference in _REFERENCES]
    known = [panel for panel in found if (panel.metric, panel.reference) in order]
    return sorted(known, key=lambda panel: order.index((panel.metric, panel.reference)))


def _like(real: pd.DataFrame, key: tuple[str, str, str], evaluation: str) -> pd.DataFrame:
    """Rows of real data that are like a panel's: of its own evaluation, or if it has none of any."""
    metric, reference, extractor = key
    like = real[(real.metric == metric) & (real.reference == reference) & (real.extractor == extractor)]
    own = like[like.evaluation == evaluation]
    return like if own.empty else own


def _molecule_block(contents: Contents, name: str, prefix: str) -> Block:
    summary = tables.summarise(contents.measured)

    found = (
        tables.table(summary, name, metric, contents.methods) for metric in tables.named("molecules", "")
    )
    drawn = [table for table in found if table.count]
    rows = contents.measured[contents.measured.evaluation == name]
    samples = int(rows.samples.max())
    return Block(
        name=name,
        scope=tables.scope(rows, name),
        pooled=_seeds(rows) > 1,
        legend=legend(_methods(contents, drawn), prefix),
        charts=[figures.quality(table, f"{samples:,}", f"{prefix}-{table.metric}") for table in drawn],
        plots=[interactive.quality(table, f"{samples:,}", name) for table in drawn],
        tables=drawn,
        chemistry=chemistry(contents, name, prefix),
    )


def _image_block(contents: Contents, name: str, prefix: str) -> Block:
    shown = panels(contents, name)
    rows = contents.measured[contents.measured.evaluation == name]
    found = {panel: _table(contents, panel, shown, _seeds(rows)) for panel in shown}
    drawn = {panel: table for panel, table in found.items() if panel.about.chart}
    keys = legend(_methods(contents, found.values()), prefix)
    floors = [
        f"{table.label} {table.floor.text} (from {tables.numbers(panel.real.samples)})"
        for panel, table in drawn.items()
        if table.floor
    ]
    if floors:
        keys.add(figures.FLOOR, "real images", f"{prefix}-floor")
    return Block(
        name=name,
        scope=tables.scope(rows, name),
        pooled=_seeds(rows) > 1,
        legend=keys,
        charts=[
            figures.quality(table, panel.samples, f"{prefix}-panel{i}")
            for i, (panel, table) in enumerate(drawn.items())
        ],
        plots=[interactive.quality(table, panel.samples, name) for panel, table in drawn.items()],
        tables=list(drawn.values()),
        plain=[table for panel, table in found.items() if not panel.about.chart],
        notes=_once(_note(contents, panel) for panel in shown),
        floors=floors,
        deficient=_once(
            extractor_name(extractor, contents)
            for extractor in rows[(rows.metric == "rank_deficient") & (rows.value > 0)].extractor.dropna()
        ),
    )


def _seeds(rows: pd.DataFrame) -> int:
    return rows.dropna(subset="value").seed.nunique()


def _table(contents: Contents, panel: Panel, shown: list[Panel], seeds: int) -> tables.Table:
    """A panel's table, which names its extractor where another panel has the same metric by another one."""
    rivals = {other.extractor for other in shown if other.metric == panel.metric}
    beside = f"{panel.beside} ({panel.extractor})" if len(rivals) > 1 else panel.beside
    [evaluation] = panel.rows.evaluation.unique()
    summary = tables.summarise(panel.rows).assign(of=seeds)
    return tables.table(
        summary,
        evaluation,
        panel.metric,
        contents.methods,
        beside,
        panel.floor,
        panel.reference,
        panel.extractor,
    )


def _methods(contents: Contents, drawn: Collection[tables.Table]) -> list[str]:
    return [method for method in contents.methods if any(method in table.rows for table in drawn)]


def _note(contents: Contents, panel: Panel) -> str:
    meaning = _MEANING[panel.metric].format(extractor_name(panel.extractor, contents))
    return f"{panel.about.label}, from {panel.samples} samples: {meaning}."


def extractor_name(extractor: str, contents: Contents) -> str:
    """`classifier-1a2b3c4d` in words, with its accuracy where that is known."""
    kind, _, weights = extractor.partition("-")
    name = f"{_EXTRACTORS.get(kind, kind)} {weights}".strip()
    accuracy = contents.accuracies.get(extractor, np.nan)
    return f"{name} (accuracy {100 * accuracy:.1f} %)" if np.isfinite(accuracy) else name


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
