"""The charts of the pages. Names of methods stand in the pages' legends, not in the charts."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.stats import binom

from pairflow.report.colours import Style, style
from pairflow.report.drawing import LOW, SIZE, TALL, Fill, Picture, canvas
from pairflow.report.tables import METRICS, Cell, Table

_FEW = 6
_CURVE_POINTS = 50
_BINS = 100  # of a histogram; shorter rows have a bin per distance


def quality(table: Table, samples: str, name: str) -> Picture:
    """Mean and standard deviation of one metric against the sampling steps, one line per method.

    The axis of counts starts at 0. That of distances is logarithmic if all are positive.
    """
    metric = METRICS[table.metric]
    with canvas(name, SIZE if len(table.rows) <= _FEW else TALL) as (axes, drawings):
        for method, cells in table.rows.items():
            mean = [cell.mean for cell in cells]
            std = [cell.std for cell in cells]
            axes.errorbar(table.columns, mean, std, **style(method).options, capsize=2.5, label=method)
        if table.floor:
            axes.axhline(table.floor.mean, color=FLOOR.hex, ls=FLOOR.line, lw=1.1, label="real images")
        _step_axis(axes, table.columns)
        _value_axis(axes, table)
        counted = metric.counted
        axes.set_ylabel(f"{table.label} of {samples}" if counted else table.label)
    values = [f"{method}: {_at_each(table.columns, cells)}" for method, cells in table.rows.items()]
    if table.floor:
        values.append(f"real images: {table.floor.text}")
    label = f"{table.label} {'of' if counted else 'from'} {samples} samples by sampling steps"
    return Picture(drawings[0], f"{label}. {'; '.join(values)}.")


def _at_each(steps: Sequence[int], cells: Sequence[Cell]) -> str:
    return ", ".join(f"{cell.text} at {nfe}" for nfe, cell in zip(steps, cells, strict=True))


REASONS = {
    "invalid_empty": Fill("muted"),
    "invalid_syntax": Fill("blue", "////"),
    "invalid_ring": Fill("orange", "||||"),
    "invalid_valence": Fill("green", "xxxx"),
    "invalid_kekulize": Fill("purple", "----"),
}
TRAINING = Fill("rule")


def reasons(tables: Sequence[Table], method: str, samples: int, name: str) -> Picture:
    """One method's invalid samples per number of steps, stacked by reason; the rest of `samples` is valid."""
    steps = tables[0].columns
    with canvas(name, LOW) as (axes, drawings):
        below = np.zeros(len(steps))
        for table in tables:
            values = np.array([cell.mean for cell in table.rows[method]])
            axes.bar(
                range(len(steps)), values, 0.7, below, **REASONS[table.metric].options, label=table.label
            )
            below += np.nan_to_num(values)
        axes.set_xticks(range(len(steps)), map(str, steps))
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, samples)
        axes.set_xlabel("sampling steps (NFE)")
        axes.set_ylabel(f"invalid of {samples:,}")
    parts = (f"{table.label}: {_at_each(steps, table.rows[method])}" for table in tables)
    return Picture(drawings[0], f"Invalid samples of {method} by reason. {'; '.join(parts)}.")


def histogram(counts: Mapping[str, pd.DataFrame], label: str, name: str) -> Picture:
    """Shares of molecules per bin of one property: training molecules filled, a line for each method.

    `counts` has rows low, high, samples, training. Its first and last bin are open, and are drawn as parts of
    their neighbours.
    """
    sampled = {method: bins for method, bins in counts.items() if bins["samples"].sum()}
    training = next(iter(counts.values()))
    edges = training["high"].to_numpy()[:-1]
    middles = (edges[1:] + edges[:-1]) / 2
    with canvas(name) as (axes, drawings):
        axes.stairs(
            _close(training["training"]), edges, fill=True, **TRAINING.options, label="training molecules"
        )
        for method, bins in sampled.items():
            axes.plot(middles, _close(bins["samples"]), **style(method).options, markevery=4, label=method)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(label)
        axes.set_ylabel("share of molecules")
    means = (
        f"{method}: {(_close(bins['samples']) * middles).sum():,.3g}"
        for method, bins in {
            "training molecules": training.assign(samples=training["training"]),
            **sampled,
        }.items()
    )
    return Picture(drawings[0], f"Distribution of {label}. Means from the bins: {'; '.join(means)}.")


def _close(counts: pd.Series) -> np.ndarray:
    """Shares per bin, with the two open bins added to their neighbours."""
    values = counts.to_numpy(float)
    inner = values[1:-1].copy()
    inner[0] += values[0]
    inner[-1] += values[-1]
    return inner / inner.sum()


def trade(lines: Mapping[str, pd.DataFrame], samples: int, name: str) -> Picture:
    """Valid samples against the time to draw them, a line per method through its numbers of steps.

    `lines` have rows nfe, seconds (per `samples`), valid.
    """
    with canvas(name, SIZE if len(lines) <= _FEW else TALL) as (axes, drawings):
        for method, points in lines.items():
            axes.plot(points["seconds"], points["valid"], **style(method).options, label=method)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"seconds per {samples:,} samples")
        axes.set_ylabel(f"valid of {samples:,}")
    values = (
        f"{method}: "
        + ", ".join(f"{row.valid:,.1f} in {row.seconds:,.3g} s at {row.nfe}" for row in points.itertuples())
        for method, points in lines.items()
    )
    return Picture(drawings[0], f"Valid samples by time of sampling. {'; '.join(values)}.")


def distances(histograms: Mapping[str, np.ndarray], vocabulary_size: int, name: str) -> Picture:
    """Hamming distances per coupling, (N+1,) counts each, and those of independent uniform sources.

    For long rows only the distances that occur are drawn, several to a bin.
    """
    length = len(next(iter(histograms.values()))) - 1
    shares = {coupling: counts / counts.sum() for coupling, counts in histograms.items()}
    expected = binom.pmf(np.arange(length + 1), length, 1 - 1 / vocabulary_size)
    edges, width = _bins([*shares.values(), expected])
    with canvas(name) as (axes, drawings):
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
    means = (f"{coupling}: mean {mean_distance(counts):.2f}" for coupling, counts in histograms.items())
    return Picture(drawings[0], f"Hamming distance between source and data. {'; '.join(means)}.")


def jumps(per_step: Mapping[str, np.ndarray], name: str) -> Picture:
    """Positions that jump per row in each backward step, (T,) per coupling, against the step's first time."""
    with canvas(name) as (axes, drawings):
        for coupling, values in per_step.items():
            times = np.arange(1, len(values) + 1) / len(values)
            every = max(1, len(values) // 6)
            axes.plot(times, values, **style(coupling).options, markevery=every, label=coupling)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time t (noise 0, data 1)")
        axes.set_ylabel("jumps per row and step")
    sums = (f"{coupling}: {values.sum():.2f} in all" for coupling, values in per_step.items())
    return Picture(drawings[0], f"Positions that jump in each backward step. {'; '.join(sums)}.")


def correlations(values: Mapping[str, tuple[float, float]], ceiling: float, unit: str, name: str) -> Picture:
    """Total correlation of each method with its standard error, and the ceiling that data have."""
    with canvas(name, LOW if len(values) <= _FEW else SIZE) as (axes, drawings):
        for place, (method, (mean, error)) in enumerate(values.items()):
            axes.errorbar(mean, place, xerr=error, **style(method).options, capsize=2.5, label=method)
        axes.axvline(ceiling, color=FLOOR.hex, ls=FLOOR.line, lw=1.1, label="ceiling: draws from the data")
        axes.set_yticks([])
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.set_xlabel(f"total correlation ({unit})")
    listed = (f"{method}: {mean:.2f} ± {error:.2f}" for method, (mean, error) in values.items())
    return Picture(drawings[0], f"Total correlation in {unit}. {'; '.join(listed)}; ceiling: {ceiling:.2f}.")


def corruption(times: np.ndarray, distances: Mapping[str, np.ndarray], name: str) -> Picture:
    """Mean Hamming distances from the data, (T+1,) per method, at `times` that run from 1 (data) to 0."""
    with canvas(name) as (axes, drawings):
        for method, values in distances.items():
            axes.plot(times, values, **style(method).options, markevery=4, label=method)
        axes.invert_xaxis()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time t (data 1, noise 0)")
        axes.set_ylabel("tokens that differ from the data")
    ends = (f"{method}: {values[-1]:.2f} at t = 0" for method, values in distances.items())
    return Picture(drawings[0], f"Mean Hamming distance from the data by time. {'; '.join(ends)}.")


INDEPENDENT = Style("ink", ".", ":")
FLOOR = Style("ink", "", ":")


def mean_distance(counts: np.ndarray) -> float:
    """Mean of a histogram over 0 .. N."""
    return float(np.average(np.arange(len(counts)), weights=counts))


def curves(logs: Mapping[str, pd.DataFrame], column: str, label: str, name: str) -> Picture:
    """One column of the training logs against the iteration, long logs as means over equal stretches.

    The first tenth of a run does not count for the vertical range, because it would flatten the rest.
    """
    lines = smooth(logs, column)
    with canvas(name) as (axes, drawings):
        for method, line in lines.items():
            every = max(1, len(line) // 6)
            axes.plot(line.iteration, line[column], **style(method).options, markevery=every, label=method)
        axes.set_ylim(late_limits(lines, column))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel("iteration")
        axes.set_ylabel(label)
    last = (f"{method}: {line[column].iloc[-1]:.3f}" for method, line in lines.items())
    return Picture(drawings[0], f"{label} by iteration. At the end {'; '.join(last)}.")


def smooth(logs: Mapping[str, pd.DataFrame], column: str) -> dict[str, pd.DataFrame]:
    """Rows iteration and `column` of the logs that have it, long ones as means over equal stretches."""
    return {
        method: _stretches(_finite(log, column)) for method, log in logs.items() if has_values(log, column)
    }


def late_limits(lines: Mapping[str, pd.DataFrame], column: str) -> tuple[float, float]:
    """The range of a column after the first tenth of each run, with a margin."""
    late = pd.concat([line[line.iteration >= 0.1 * line.iteration.max()][column] for line in lines.values()])
    margin = 0.08 * (late.max() - late.min()) or 0.1 * abs(late.max()) or 1
    return late.min() - margin, late.max() + margin


def has_values(log: pd.DataFrame, column: str) -> bool:
    """Whether a training log has finite values in a column."""
    return not _finite(log, column).empty


def _step_axis(axes: Axes, steps: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(*zip(*step_ticks(steps), strict=True))
    axes.minorticks_off()
    axes.set_xlabel("sampling steps (NFE)")


def step_ticks(steps: list[int]) -> list[tuple[int, str]]:
    """A tick at every number of steps; if there are many, some have no text."""
    every = 1 + (len(steps) - 1) // 8
    return [(step, str(step) if index % every == 0 else "") for index, step in enumerate(steps)]


def is_logarithmic(table: Table) -> bool:
    """Whether a metric has a logarithmic axis: distances have one if all are positive."""
    cells = [cell for cells in table.rows.values() for cell in cells if cell.count]
    means = [cell.mean for cell in [*cells, *filter(None, [table.floor])]]
    return METRICS[table.metric].log and bool(min(means, default=0) > 0)


def _value_axis(axes: Axes, table: Table) -> None:
    """The axis starts at 0 for counts; for positive distances it is logarithmic, with room for deviations."""
    cells = [cell for cells in table.rows.values() for cell in cells if cell.count]
    means = [cell.mean for cell in [*cells, *filter(None, [table.floor])]]
    if not METRICS[table.metric].log:
        axes.set_ylim(bottom=0)
    elif is_logarithmic(table):
        ends = [*means, *(cell.mean + sign * cell.std for cell in cells for sign in (-1, 1))]
        low, high = max(np.nanmin(ends), min(means) / 3) / 1.2, 1.2 * np.nanmax(ends)
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(low, high)
        ticks = _ticks(low, high)
        axes.set_yticks(ticks, [f"{tick:,.10g}" for tick in ticks])
        axes.minorticks_off()


def _ticks(low: float, high: float) -> list[float]:
    """Round values within a logarithmic axis: powers of ten, else 1, 2 and 5 times them, else even steps."""
    powers = [10.0**power for power in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)]
    fine = [lead * power for power in powers for lead in (1, 2, 5)]
    for choice in (powers, fine, MaxNLocator(4).tick_values(low, high)):
        inside = [float(value) for value in choice if low <= value <= high]
        if len(inside) >= 3:
            break
    return inside


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
