"""The charts of the pages. Names of methods stand in the pages' legends, not in the charts."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from scipy.stats import binom

from pairflow.report.charts import Axis, Chart, PlotLine
from pairflow.report.colours import Style, contrast, style
from pairflow.report.drawing import FEW, LOW, SIZE, Picture, canvas, draw, to_svg
from pairflow.report.grid import Cell, Grid, list_counts
from pairflow.report.words import format_percent, pluralise

_MARKERS = 7  # at most, on a long curve, so that they do not cover it
_BEYOND = 1.15  # factor by which a floor reaches beyond the first and the last number of steps
_CURVE_POINTS = 50
_BINS = 100  # of a histogram; shorter rows have a bin per distance


def quality(table: Grid, samples: Iterable[int], name: str) -> Picture:
    """Mean and standard deviation of one metric against the calls of the network, one line per method.

    Without calls the table's steps count, each of which is one. `samples` are the numbers of samples that its
    values come from. Counts are shown as per cent of them, from 0 on. The axis of distances is logarithmic if
    all are positive.
    """
    metric, steps, floor = table.about, table.columns, table.floor
    counts = {*samples}
    of_samples = f"of {list_counts(counts)} samples"
    unit = 100 / max(counts) if metric.counted else 1.0
    look = contrast(table.rows)
    calls = {method: table.calls.get(method, steps) for method in table.rows}
    lines = [
        PlotLine(
            method,
            look(method),
            calls[method],
            [unit * cell.mean for cell in cells],
            [
                _describe_point(table, f"NFE {nfe:,}, {pluralise(number, 'call')}", cell, unit, of_samples)
                for nfe, number, cell in zip(steps, calls[method], cells, strict=True)
            ],
            error=[unit * cell.std for cell in cells],
        )
        for method, cells in table.rows.items()
    ]
    said = {method: list_cells(steps, cells) for method, cells in table.rows.items()}
    least = [min(own) for own in zip(*calls.values(), strict=True)]
    means = [cell.mean for cells in table.rows.values() for cell in cells if cell.count]
    across = None
    if floor:
        reach = [least[0] / _BEYOND, *least, max(map(max, calls.values())) * _BEYOND]
        texts = [[f"{metric.label} {floor.text} {floor.spread}".rstrip()]] * len(reach)
        error = [floor.std] * len(reach) if floor.spread else ()
        across = PlotLine(metric.real, FLOOR, reach, [floor.mean] * len(reach), texts, error=error)
        said[metric.real] = floor.text
        means.append(floor.mean)
    every = 1 + (len(least) - 1) // 8  # if there are many, some have no text
    ticks = [(number, str(number) if i % every == 0 else "") for i, number in enumerate(least)]
    log = metric.log and bool(min(means, default=0) > 0)
    counted = of_samples if metric.counted else of_samples.replace("of", "from", 1)
    chart = Chart(
        f"{table.label} by calls of the network, evaluation {table.evaluation}",
        Axis("calls of the network", log=True, ticks=ticks),
        Axis(
            f"{table.label} (% of samples)" if metric.counted else table.label, log=log, zero=not metric.log
        ),
        lines,
        describe(f"{table.label} {counted} by sampling steps", said),
        across,
        tall=True,
        named=True,
    )
    return draw(chart, name)


def _describe_point(table: Grid, where: str, cell: Cell, unit: float, of_samples: str) -> list[str]:
    """What the point at `where` says: counts both as a share and as they stand in the table."""
    trials = pluralise(cell.count, "trial")
    if cell.seeds > 1:
        trials = f"{cell.seeds} seeds, {trials} in all"
    value = f"{cell.text} {cell.spread}".rstrip()
    if table.about.counted:
        share = format_percent(unit * cell.mean / 100)
        return [where, f"{table.about.label} {share}", f"{value} {of_samples}", trials]
    return [where, f"{table.about.label} {value}", trials]


def describe(title: str, said: Mapping[str, str], before: str = "") -> str:
    """The text that stands in for a chart: what it shows, and what it shows of each name."""
    return f"{title}. {before}{'; '.join(f'{name}: {text}' for name, text in said.items())}."


def list_cells(steps: Sequence[int], cells: Sequence[Cell]) -> str:
    """`12.0 at 1, 14.5 at 2`."""
    return ", ".join(f"{cell.text} at {nfe}" for nfe, cell in zip(steps, cells, strict=True))


def distances(histograms: Mapping[str, np.ndarray], vocabulary_size: int, name: str) -> Picture:
    """Hamming distances per coupling, (N+1,) counts each, and those of independent uniform sources.

    For long rows only the distances that occur are drawn, several to a bin.
    """
    length = len(next(iter(histograms.values()))) - 1
    shares = {coupling: counts / counts.sum() for coupling, counts in histograms.items()}
    expected = binom.pmf(np.arange(length + 1), length, 1 - 1 / vocabulary_size)
    edges, width = _bins([*shares.values(), expected])
    means = {coupling: f"mean {mean_distance(counts):.2f}" for coupling, counts in histograms.items()}
    with canvas() as (figure, axes):
        for coupling, share in shares.items():
            look, share = style(coupling), _sum_bins(share, edges)
            axes.stairs(share, edges - 0.5, fill=True, color=look.hex, alpha=0.22)
            axes.stairs(share, edges - 0.5, color=look.hex, ls=look.line, lw=1.5, label=coupling)
        middles, dots = edges[:-1] + (width - 1) / 2, INDEPENDENT.options | {"lw": 1.1, "ms": 3.5}
        axes.plot(middles, _sum_bins(expected, edges), **dots, label="independent sources, expected")
        axes.set_xlim(edges[0] - 0.5, edges[-1] - 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("Hamming distance of x0 and x1")
        axes.set_ylabel("share of pairs" if width == 1 else f"share of pairs per {width} distances")
        alt = describe("Hamming distance between source and data", means)
        return Picture(to_svg(figure, name), alt, figure)


def jumps(per_step: Mapping[str, np.ndarray], name: str) -> Picture:
    """Positions that jump per row in each backward step, (T,) per coupling, against the step's first time."""
    title = "Positions that jump in each backward step"
    lines = [
        PlotLine(coupling, style(coupling), np.arange(1, len(y) + 1) / len(y), y, markers=_MARKERS)
        for coupling, y in per_step.items()
    ]
    alt = describe(title, {coupling: f"{values.sum():.2f} in all" for coupling, values in per_step.items()})
    x, y = Axis("time t (noise 0, data 1)"), Axis("jumps per row and step", zero=True)
    return draw(Chart(title, x, y, lines, alt), name)


def correlations(values: Mapping[str, tuple[float, float]], ceiling: float, unit: str, name: str) -> Picture:
    """Total correlation of each method with its standard error, and the ceiling that data have."""
    said = {method: f"{mean:.2f} ± {error:.2f}" for method, (mean, error) in values.items()}
    alt = describe(f"Total correlation in {unit}", {**said, "ceiling": f"{ceiling:.2f}"})
    with canvas(LOW if len(values) <= FEW else SIZE) as (figure, axes):
        for place, (method, (mean, error)) in enumerate(values.items()):
            axes.errorbar(mean, place, xerr=error, **style(method).options, capsize=2.5, label=method)
        axes.axvline(ceiling, color=FLOOR.hex, ls=FLOOR.line, lw=1.1, label="ceiling: draws from the data")
        axes.set_yticks([])
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.set_xlabel(f"total correlation ({unit})")
        return Picture(to_svg(figure, name), alt, figure)


INDEPENDENT = Style("ink", ".", ":")
FLOOR = Style("ink", "", ":")


def mean_distance(counts: np.ndarray) -> float:
    """Mean of a histogram over 0 .. N."""
    return float(np.average(np.arange(len(counts)), weights=counts))


def curves(logs: Mapping[str, pd.DataFrame], column: str, label: str, name: str) -> Picture:
    """One column of the training logs against the iteration, long logs as means over equal stretches.

    The first tenth of a run does not count for the vertical range, because it would flatten the rest.
    """
    finite = {method: _finite(log, column) for method, log in logs.items()}
    smooth = {method: _stretches(log) for method, log in finite.items() if not log.empty}
    late = pd.concat([line[line.iteration >= 0.1 * line.iteration.max()][column] for line in smooth.values()])
    margin = 0.08 * (late.max() - late.min()) or 0.1 * abs(late.max()) or 1
    lines = []
    for method, line in smooth.items():
        x, y = line["iteration"].tolist(), line[column].tolist()
        texts = [[f"iteration {at:,.0f}", f"{value:,.4g}"] for at, value in zip(x, y, strict=True)]
        lines.append(PlotLine(method, style(method), x, y, texts, markers=_MARKERS))
    title, last = f"{label} by iteration", {line.name: f"{line.y[-1]:.3f}" for line in lines}
    limits = (late.min() - margin, late.max() + margin)
    alt = describe(title, last, "At the end ")
    return draw(Chart(title, Axis("iteration"), Axis(label, limits=limits), lines, alt, whole=True), name)


def has_values(log: pd.DataFrame, column: str) -> bool:
    """Whether a training log has finite values in a column."""
    return not _finite(log, column).empty


def _bins(shares: Sequence[np.ndarray]) -> tuple[np.ndarray, int]:
    """Edges of bins over (N+1,) shares, and the number of distances in each."""
    length = len(shares[0])
    if length <= _BINS:
        return np.arange(length + 1), 1
    occur = np.flatnonzero(np.max(shares, axis=0) > 1e-5)
    width = -(-(occur[-1] - occur[0] + 1) // _BINS)
    return np.arange(occur[0], occur[-1] + 1 + width, width), int(width)


def _sum_bins(shares: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sums of (N+1,) shares from each edge to the next."""
    return np.add.reduceat(shares, edges[:-1])


def _finite(log: pd.DataFrame, column: str) -> pd.DataFrame:
    return log.loc[np.isfinite(log[column].astype(float)), ["iteration", column]]


def _stretches(log: pd.DataFrame) -> pd.DataFrame:
    """At most `_CURVE_POINTS` rows: means over consecutive rows of equal number."""
    return log.groupby(np.arange(len(log)) * _CURVE_POINTS // max(len(log), _CURVE_POINTS)).mean()
