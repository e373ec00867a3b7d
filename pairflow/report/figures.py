"""The charts of the pages. Names of methods stand in the pages' legends, not in the charts."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.stats import binom

from pairflow.report.charts import Axis, Chart, PlotLine
from pairflow.report.colours import HEX, Style, contrast, style
from pairflow.report.drawing import FEW, LOW, SIZE, Fill, Picture, canvas, draw, panels, to_svg
from pairflow.report.grid import Cell, Grid, list_counts
from pairflow.report.words import format_percent, pluralise

_MARKERS = 7  # at most, on a long curve, so that they do not cover it
_BEYOND = 1.15  # factor by which a floor reaches beyond the first and the last number of steps
_CURVE_POINTS = 50
_MARGIN = 0.1  # of a histogram's range, for what is beyond it
_TRAINING = "training molecules"
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
                _describe(table, f"NFE {nfe:,}, {pluralise(number, 'call')}", cell, unit, of_samples)
                for nfe, number, cell in zip(steps, calls[method], cells, strict=True)
            ],
            error=[unit * cell.std for cell in cells],
        )
        for method, cells in table.rows.items()
    ]
    said = {method: _at_each(steps, cells) for method, cells in table.rows.items()}
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
        _say(f"{table.label} {counted} by sampling steps", said),
        across,
        tall=True,
        named=True,
    )
    return draw(chart, name)


def _describe(table: Grid, where: str, cell: Cell, unit: float, of_samples: str) -> list[str]:
    """What the point at `where` says: counts both as a share and as they stand in the table."""
    trials = pluralise(cell.count, "trial")
    if cell.seeds > 1:
        trials = f"{cell.seeds} seeds, {trials} in all"
    value = f"{cell.text} {cell.spread}".rstrip()
    if table.about.counted:
        share = format_percent(unit * cell.mean / 100)
        return [where, f"{table.about.label} {share}", f"{value} {of_samples}", trials]
    return [where, f"{table.about.label} {value}", trials]


def _say(title: str, said: Mapping[str, str], before: str = "") -> str:
    """The text that stands in for a chart: what it shows, and what it shows of each name."""
    return f"{title}. {before}{'; '.join(f'{name}: {text}' for name, text in said.items())}."


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


def reasons(tables: Sequence[Grid], method: str, samples: int, name: str) -> Picture:
    """One method's invalid samples per number of steps, stacked by reason; the rest of `samples` is valid."""
    steps = tables[0].columns
    said = {table.label: _at_each(steps, table.rows[method]) for table in tables}
    calls = tables[0].calls.get(method, steps)
    with canvas(LOW) as (figure, axes):
        below = np.zeros(len(steps))
        for table in tables:
            values = np.array([cell.mean for cell in table.rows[method]])
            axes.bar(
                range(len(steps)), values, 0.7, below, **REASONS[table.metric].options, label=table.label
            )
            below += np.nan_to_num(values)
        axes.set_xticks(range(len(steps)), map(str, calls))
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, samples)
        axes.set_xlabel("calls of the network")
        axes.set_ylabel(f"invalid of {samples:,}")
        return Picture(to_svg(figure, name), _say(f"Invalid samples of {method} by reason", said), figure)


def histograms(counts: Mapping[str, pd.DataFrame], label: str, name: str) -> Picture:
    """Shares of molecules per bin of one property: a panel per method, the training molecules filled in each.

    `counts` has rows low, high, samples, training. Its first and last bin are open: they are drawn apart, in
    hatched margins, so that they do not look like peaks.
    """
    training = next(iter(counts.values()))
    edges = training["high"].to_numpy()[:-1]
    middles = (edges[1:] + edges[:-1]) / 2
    filled = _shares(training["training"])
    shares = {method: _shares(bins["samples"]) for method, bins in counts.items() if bins["samples"].sum()}
    said = {name: _describe_bins(share, middles) for name, share in {_TRAINING: filled, **shares}.items()}
    alt = _say(
        f"Distribution of {label}", said, "Means within the training molecules’ range, and shares beyond it: "
    )
    look = contrast(counts)
    with panels([*counts], label, "share of molecules") as (figure, by_method):
        for method, axes in by_method.items():
            axes.stairs(filled[1:-1], edges, fill=True, **TRAINING.options, label=_TRAINING)
            if method in shares:
                axes.stairs(shares[method][1:-1], edges, color=look(method).hex, lw=1.2)
                _draw_open_bins(axes, shares[method], edges, look(method))
        axes.set_ylim(bottom=0)  # of all panels
        return Picture(to_svg(figure, name), alt, figure)


def _shares(counts: pd.Series) -> np.ndarray:
    return counts.to_numpy(float) / counts.sum()


def _describe_bins(share: np.ndarray, middles: np.ndarray) -> str:
    beyond = f"{format_percent(share[0] + share[-1])} beyond" if share[0] + share[-1] else ""
    inner = share[1:-1]
    mean = f"{inner @ middles / inner.sum():,.3g}" if inner.sum() else ""
    return ", ".join(filter(None, [mean, beyond]))


def _draw_open_bins(axes: Axes, share: np.ndarray, edges: np.ndarray, look: Style) -> None:
    """The shares below and above all bins, as markers in a hatched margin on either side."""
    width = _MARGIN * (edges[-1] - edges[0])
    for beyond, text, start in (
        (share[0], "less", edges[0] - 1.2 * width),
        (share[-1], "more", edges[-1] + 0.2 * width),
    ):
        if beyond:
            axes.axvspan(start, start + width, fill=False, hatch="////", ec=HEX["rule"], lw=0)
            axes.plot([start + width / 2], [beyond], **look.options)
            place = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "top", "rotation": 90}
            axes.text(start + width / 2, 0.98, text, color=HEX["muted"], fontsize=5.5, **place)


def trade(lines: Mapping[str, pd.DataFrame], samples: int, evaluation: str, name: str) -> Picture:
    """Valid samples against the time to draw them, a line per method through its numbers of steps.

    `lines` have rows nfe, calls (of the network), seconds (per `samples`), valid.
    """
    title = "Valid samples by time of sampling"
    look, by_method, said = contrast(lines), [], {}
    for method, points in lines.items():
        rows = list(points.itertuples())
        texts = [
            [
                f"NFE {row.nfe:,}, {pluralise(row.calls, 'call')}",
                f"valid {row.valid:,.1f}",
                f"{row.seconds:,.3g} s",
            ]
            for row in rows
        ]
        x, y = points["seconds"].tolist(), points["valid"].tolist()
        by_method.append(PlotLine(method, look(method), x, y, texts))
        said[method] = ", ".join(f"{row.valid:,.1f} in {row.seconds:,.3g} s at {row.nfe}" for row in rows)
    chart = Chart(
        f"{title}, evaluation {evaluation}",
        Axis(f"seconds per {samples:,} samples", log=True),
        Axis(f"valid of {samples:,}", zero=True),
        by_method,
        _say(title, said),
        tall=True,
    )
    return draw(chart, name)


def guidance(lines: Mapping[str, pd.DataFrame], title: str, name: str) -> Picture:
    """Novel molecules against those in the class asked for: a line per method through the guidance weights.

    `lines` have rows weight, valid and novel_strict (shares of the samples) and in_class (of the valid ones).
    """
    look, by_method, said = contrast(lines), [], {}
    for method, points in lines.items():
        rows = list(points.sort_values("weight").itertuples())
        texts = [
            [
                f"guidance {row.weight:g}",
                f"in the class {format_percent(row.in_class)}",
                f"novel {format_percent(row.novel_strict)}",
                f"valid {format_percent(row.valid)}",
            ]
            for row in rows
        ]
        x, y = ([100 * getattr(row, key) for row in rows] for key in ("in_class", "novel_strict"))
        by_method.append(PlotLine(method, look(method), x, y, texts))
        said[method] = "; ".join(", ".join(text) for text in texts)
    chart = Chart(
        f"Novelty by the weight of guidance, {title}",
        Axis("in the class (% of valid samples)"),
        Axis("novel (% of samples)", zero=True),
        by_method,
        _say(f"Samples by the weight of guidance, {title}", said),
        tall=True,
    )
    return draw(chart, name)


def plane(
    lines: Mapping[str, Mapping[str, Mapping[str, float]]],
    points: Mapping[str, Mapping[str, float]],
    title: str,
    name: str,
) -> Picture:
    """The judge's perplexity against the entropy: a line per method through its settings, and single points.

    `lines` are method -> setting -> metric -> mean; `points`, named in `MARKS`, are real text and controls.
    """
    look, drawn, said = contrast(lines), [], {}
    for method, settings in lines.items():
        drawn.append(_plane_line(method, look(method), settings))
        said[method] = "; ".join(f"{_place(values)} at {setting}" for setting, values in settings.items())
    for point, values in points.items():
        drawn.append(_plane_line(point, MARKS[point], {"": values}))
        said[point] = _place(values)
    chart = Chart(
        title,
        Axis("entropy of a sample (nats)"),
        Axis("judge perplexity", log=True),
        drawn,
        _say(f"{title}; perplexity at entropy", said),
        tall=True,
    )
    return draw(chart, name)


def _plane_line(name: str, look: Style, settings: Mapping[str, Mapping[str, float]]) -> PlotLine:
    texts = [
        [setting or name, f"perplexity {values['judge_ppl']:,.4g}", f"entropy {values['entropy']:.3f}"]
        for setting, values in settings.items()
    ]
    entropy, perplexity = ([values[key] for values in settings.values()] for key in ("entropy", "judge_ppl"))
    return PlotLine(name, look, entropy, perplexity, texts)


def _place(values: Mapping[str, float]) -> str:
    return f"{values['judge_ppl']:,.4g} at {values['entropy']:.2f}"


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
        alt = _say("Hamming distance between source and data", means)
        return Picture(to_svg(figure, name), alt, figure)


def jumps(per_step: Mapping[str, np.ndarray], name: str) -> Picture:
    """Positions that jump per row in each backward step, (T,) per coupling, against the step's first time."""
    title = "Positions that jump in each backward step"
    lines = [
        PlotLine(coupling, style(coupling), np.arange(1, len(y) + 1) / len(y), y, markers=_MARKERS)
        for coupling, y in per_step.items()
    ]
    alt = _say(title, {coupling: f"{values.sum():.2f} in all" for coupling, values in per_step.items()})
    x, y = Axis("time t (noise 0, data 1)"), Axis("jumps per row and step", zero=True)
    return draw(Chart(title, x, y, lines, alt), name)


def correlations(values: Mapping[str, tuple[float, float]], ceiling: float, unit: str, name: str) -> Picture:
    """Total correlation of each method with its standard error, and the ceiling that data have."""
    said = {method: f"{mean:.2f} ± {error:.2f}" for method, (mean, error) in values.items()}
    alt = _say(f"Total correlation in {unit}", {**said, "ceiling": f"{ceiling:.2f}"})
    with canvas(LOW if len(values) <= FEW else SIZE) as (figure, axes):
        for place, (method, (mean, error)) in enumerate(values.items()):
            axes.errorbar(mean, place, xerr=error, **style(method).options, capsize=2.5, label=method)
        axes.axvline(ceiling, color=FLOOR.hex, ls=FLOOR.line, lw=1.1, label="ceiling: draws from the data")
        axes.set_yticks([])
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.set_xlabel(f"total correlation ({unit})")
        return Picture(to_svg(figure, name), alt, figure)


def corruption(times: np.ndarray, distances: Mapping[str, np.ndarray], name: str) -> Picture:
    """Mean Hamming distances from the data, (T+1,) per method, at `times` that run from 1 (data) to 0."""
    title = "Mean Hamming distance from the data by time"
    lines = [PlotLine(method, style(method), times, y, markers=6) for method, y in distances.items()]
    alt = _say(title, {method: f"{values[-1]:.2f} at t = 0" for method, values in distances.items()})
    x, y = Axis("time t (data 1, noise 0)"), Axis("tokens that differ from the data", zero=True)
    return draw(Chart(title, x, y, lines, alt, reverse=True), name)


INDEPENDENT = Style("ink", ".", ":")
FLOOR = Style("ink", "", ":")
MARKS = {
    "held-out text": Style("ink", "*", ":"),
    "shuffled": Style("muted", "P", ":"),
    "chain": Style("muted", "p", ":"),
    "snippet": Style("muted", "h", ":"),
}


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
    alt = _say(title, last, "At the end ")
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
