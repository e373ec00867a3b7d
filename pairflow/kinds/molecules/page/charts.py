"""Draws the charts that only pages on molecules have: invalid samples, properties and guidance."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from pairflow.kinds.molecules.settings.metrics import METRICS
from pairflow.report import drawing
from pairflow.report.colours import Fill, Style, contrast
from pairflow.report.drawing import Picture, describe, describe_lines, line_chart
from pairflow.report.grid import Grid
from pairflow.report.words import format_percent, shorten

_PANELS = 3  # most small panels in a row
_PANEL = 0.72  # inches: the height of a panel
_TRAINING = "training molecules"
REASONS = {
    "invalid_empty": Fill("muted"),
    "invalid_syntax": Fill("blue", "////"),
    "invalid_ring": Fill("orange", "||||"),
    "invalid_valence": Fill("green", "xxxx"),
    "invalid_kekulize": Fill("purple", "----"),
}
TRAINING = Fill("rule")
_REAL = Style("ink", "", ":")
_CONTROLS = Style("muted", "s", "--"), Style("muted", "d", ":"), Style("muted", "^", "-.")


def reasons(tables: Sequence[Grid], method: str, samples: int, name: str) -> Picture:
    """Draw the invalid samples of one method at each number of steps, stacked by reason. `tables` has a
    table for each reason, with the counts by method, and `samples` is the number of samples of a trial.
    `name` is the name of the drawing."""
    steps = tables[0].columns
    calls = tables[0].calls.get(method, steps)
    counts = {}
    with drawing.canvas(drawing.LOW) as (figure, axes):
        below = np.zeros(len(steps))
        for table in tables:
            cells = table.rows[method]
            texts = (f"{cell.text} at {nfe}" for nfe, cell in zip(steps, cells, strict=True))
            counts[table.label] = ", ".join(texts)
            values = np.nan_to_num([cell.mean for cell in cells])
            look = REASONS[table.metric].options
            axes.bar(range(len(steps)), values, 0.7, below, **look, label=table.label)
            below += values
        axes.set_xticks(range(len(steps)), map(str, calls))
        axes.grid(visible=False, axis="x")
        axes.set(ylim=(0, samples), xlabel="calls of the network", ylabel=f"invalid of {samples:,}")
        return drawing.finish(figure, name, describe(f"Invalid samples of {method} by reason", counts))


def histograms(counts: Mapping[str, pd.DataFrame], label: str, name: str) -> Picture:
    """Draw shares of molecules per bin of one property: a panel per method, each with the training molecules.

    `counts` maps each method to a table with a row for each bin and the columns low, high, samples and
    training (see `chemistry.histograms`), and `label` names the property. The first and the last bin are
    open: arrows show their shares, because bars would look like peaks. `name` is the name of the drawing.
    """
    training = next(iter(counts.values()))
    edges = training["high"].to_numpy()[:-1]
    filled = _shares(training["training"])
    shares = {method: _shares(bins["samples"]) for method, bins in counts.items() if bins["samples"].sum()}
    texts = {name: _describe_bins(share, edges) for name, share in {_TRAINING: filled, **shares}.items()}
    title = f"Distribution of {label}, means within the training molecules’ range and shares beyond it"
    look, columns = contrast(counts), min(len(counts), _PANELS)
    rows = -(-len(counts) // columns)
    grid = {"nrows": rows, "ncols": columns, "sharex": True, "sharey": True, "squeeze": False}
    with drawing.canvas((drawing.WIDTH, 0.5 + _PANEL * rows), **grid) as (figure, panels):
        for method, axes in zip_longest(counts, panels.flat):
            if method is None:
                axes.remove()
                continue
            axes.set_title(shorten(method, drawing.NAME), fontsize=7, pad=3)
            axes.stairs(filled[1:-1], edges, fill=True, **TRAINING.options, label=_TRAINING)
            if method in shares:
                colour = look(method).hex
                axes.stairs(shares[method][1:-1], edges, color=colour, lw=1.2)
                for arrow, edge, share in zip("<>", edges[[0, -1]], shares[method][[0, -1]], strict=True):
                    if share:
                        axes.plot(edge, share, arrow, color=colour, clip_on=False)
        first = panels[0, 0]  # all panels share its scales
        first.xaxis.set_major_locator(MaxNLocator(2))
        first.yaxis.set_major_locator(MaxNLocator(3))
        first.set_ylim(bottom=0)
        figure.supxlabel(label, fontsize=7.75)
        figure.supylabel("share of molecules", fontsize=7.75)
        return drawing.finish(figure, name, describe(title, texts))


def _shares(counts: pd.Series) -> np.ndarray:
    return counts.to_numpy(float) / counts.sum()


def _describe_bins(share: np.ndarray, edges: np.ndarray) -> str:
    beyond = f"{format_percent(share[0] + share[-1])} beyond" if share[0] + share[-1] else ""
    inner, middles = share[1:-1], (edges[1:] + edges[:-1]) / 2
    mean = f"{inner @ middles / inner.sum():,.3g}" if inner.sum() else ""
    return ", ".join(filter(None, [mean, beyond]))


STAGES = {  # metric -> the name of its stage: every stage is a part of the previous one
    "valid": "valid",
    "unique_strict": "different",
    "novel_strict": "novel",
    "usual_size": "usual size",
    "usual_rings": "usual rings",
    "usual_atoms": "usual atoms",
    "few_alerts": "few alerts",
    "plausible": "plausible",
}


def survivors(shares: pd.DataFrame, real: str, name: str) -> Picture:
    """Draw the share of samples that is left at each of STAGES (from valid to plausible), a line per method.

    `shares` has the columns method, stage (its number), share (in %) and nfe (the number of steps; NaN for
    real data and controls). `real` is the entry of the column method for real data, and `name` the name of
    the drawing.
    """
    methods = shares.method[shares.nfe.notna()].unique()
    controls = [method for method in shares.method.unique() if method not in (*methods, real)]
    looks = {
        **{method: contrast(methods)(method) for method in methods},
        **dict(zip(controls, _CONTROLS, strict=False)),
        real: _REAL,
    }

    def write(row: Any) -> list[str]:
        return [f"{[*STAGES.values()][row.stage]} {format_percent(row.share / 100)}"]

    lines = drawing.make_lines(shares, "stage", "share", write, looks.__getitem__)
    with line_chart(lines, "", "left (% of samples)") as (figure, axes):
        axes.set_xticks(range(len(STAGES)), [*STAGES.values()], rotation=30, ha="right")
        drawing.start_at_zero(axes)
        alt = describe_lines("Samples that are left at each stage, from valid to plausible", lines)
        return drawing.finish(figure, name, alt, lines, named=True)


def guidance(rows: pd.DataFrame, metric: str, title: str, name: str) -> Picture:
    """Draw novel molecules against how well samples meet what was asked for, a line per method.

    A line goes through the guidance weights. `rows` has the columns method and weight, and valid,
    novel_strict and `metric` as shares of all samples. y is the share of novel molecules; x is `metric` as a
    share of the valid samples. `title` is only in the text that describes the chart, and `name` is the name
    of the drawing.
    """
    y = "novel (% of samples)"
    what = "in the class" if metric == "in_class" else METRICS[metric].label
    x = f"{what} (% of valid samples)"

    def write(row: Any) -> list[str]:
        shares = {"novel": row.novel_strict, "valid": row.valid}
        texts = (f"{group} {format_percent(share)}" for group, share in shares.items())
        return [f"guidance {row.weight:g}", f"{what} {format_percent(row.x / 100)}", *texts]

    points = rows.assign(x=100 * rows[metric] / rows.valid, y=100 * rows.novel_strict)
    lines = drawing.make_lines(points.sort_values(["method", "weight"]), "x", "y", write)
    with line_chart(lines, x, y) as (figure, axes):
        drawing.start_at_zero(axes)
        weights = ", ".join(f"{weight:g}" for weight in sorted(rows.weight.unique()))
        alt = describe_lines(f"{y} by share {x}, {title}, at guidance {weights}", lines)
        return drawing.finish(figure, name, alt, lines)
