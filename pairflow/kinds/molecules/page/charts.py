"""The charts that only pages on molecules have: reasons, properties, speed and guidance."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from pairflow.report.charts import Axis, Chart, PlotLine
from pairflow.report.colours import HEX, Style, contrast
from pairflow.report.drawing import LOW, Fill, Picture, canvas, draw, panels, to_svg
from pairflow.report.figures import describe, list_cells
from pairflow.report.grid import Grid
from pairflow.report.words import format_percent, pluralise

_MARGIN = 0.1  # of a histogram's range, for what is beyond it
_TRAINING = "training molecules"
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
    said = {table.label: list_cells(steps, table.rows[method]) for table in tables}
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
        return Picture(to_svg(figure, name), describe(f"Invalid samples of {method} by reason", said), figure)


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
    alt = describe(
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
        describe(title, said),
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
        describe(f"Samples by the weight of guidance, {title}", said),
        tall=True,
    )
    return draw(chart, name)
