"""Draws the figures of a comparison: curves in one panel, and differences with their intervals."""

from collections.abc import Mapping, Sequence

import numpy as np

from pairflow.report import drawing
from pairflow.report.colours import HEX, Style, style
from pairflow.report.compare.sections import ComparedGrid, ComparedRow, Contrast
from pairflow.report.drawing import Line, Picture
from pairflow.report.words import shorten

_LOOKS = (  # of experiments, the baseline first
    Style("muted", "o"),
    Style("vermillion", "s", "--"),
    Style("blue", "^", "-."),
    Style("green", "D", ":"),
    Style("purple", "v", (0, (8, 2))),
    Style("orange", "p", (0, (3, 3))),
)
_ROW, _FRAME = 0.15, 0.65  # inches: the height of a row of differences, and of the frame around all


def choose_looks(grid: ComparedGrid, runs: Sequence[str]) -> dict[str, Style]:
    """Return the style of each experiment in a table, or of each method if there is a single experiment."""
    if _is_single(grid):
        return {row.method: style(row.method) for row in grid.table}
    return {run: _LOOKS[index % len(_LOOKS)] for index, run in enumerate(runs)}


def _is_single(grid: ComparedGrid) -> bool:
    return len({row.run for row in grid.table}) == 1


def curves(grid: ComparedGrid, looks: Mapping[str, Style], name: str) -> dict[str, Picture]:
    """Draw quality against the calls of the network: a panel per method with a line per experiment.

    A single experiment has one panel with the lines of all methods. Methods with only one line get no panel.
    All panels have the same vertical axis, unless it is logarithmic.
    """
    single = _is_single(grid)
    panels: dict[str, dict[str, ComparedRow]] = {}
    for key, row in grid.table.items():
        title, subject = (grid.full_label, key.method) if single else (key.method, key.run)
        panels.setdefault(title, {})[subject] = row
    return {
        title: _panel(grid, title, rows, looks, f"{name}-{index}")
        for index, (title, rows) in enumerate(panels.items())
        if len(rows) > 1
    }


def _panel(
    grid: ComparedGrid, title: str, rows: Mapping[str, ComparedRow], looks: Mapping[str, Style], name: str
) -> Picture:
    lines = []
    for subject, row in rows.items():
        calls, cells = [row.calls[nfe] for nfe in row.cells], row.cells.values()
        means, errors = [cell.mean for cell in cells], [cell.std for cell in cells]
        lines.append(Line(subject, looks[subject], calls, means, error=errors))
    label = f"{grid.about.label} of {max(grid.counts):,}" if grid.about.counted else grid.about.label
    with drawing.line_chart(lines, "calls of the network", label) as (figure, axes):
        steps = sorted({nfe for row in rows.values() for nfe in row.calls})
        # The ticks are the calls of the cheapest method: with masks there is one call less.
        calls = [min(row.calls[nfe] for row in rows.values() if nfe in row.calls) for nfe in steps]
        drawing.show_calls(axes, calls)
        every = [cell for row in grid.table.values() for cell in row.cells.values()]
        if grid.about.log and min(cell.mean for cell in every) > 0:
            drawing.make_log(axes, lines)
        else:  # the same axis in all panels, which includes 0
            ends = [cell.mean + sign * np.nan_to_num(cell.std) for cell in every for sign in (-1, 1)]
            low, high = min(0.0, *ends), max(0.0, *ends)
            axes.set_ylim(1.05 * low, 1.05 * high or 1)
        title = f"{grid.full_label} from {grid.samples} by calls of the network, {title}"
        return drawing.finish(figure, name, drawing.describe_lines(title, lines))


def forest(grid: ComparedGrid, looks: Mapping[str, Style], baseline: str, name: str) -> Picture | None:
    """Draw each tested difference with its interval, filled if it is decided; None if nothing was tested."""
    rows = [(row, nfe) for row in grid.contrasts for nfe in row.tested]
    if not rows:
        return None
    best = grid.about.best
    side = f" ({'right' if best == 'highest' else 'left'} is better)" if best else ""
    with drawing.canvas((drawing.WIDTH, _FRAME + _ROW * len(rows))) as (figure, axes):
        axes.axvline(0, color=HEX["ink"], lw=0.9)
        for height, (row, nfe) in enumerate(rows):
            cell, look = row.cells[nfe], looks[row.subject]
            options = look.options | {"ls": "", "mfc": look.hex if cell.decided else HEX["page"]}
            axes.errorbar(cell.value, height, xerr=cell.half, **options, elinewidth=1.3, label=row.subject)
        labels = [f"{shorten(row.key.method, drawing.NAME)} · {nfe}" for row, nfe in rows]
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"difference from {shorten(baseline, drawing.NAME)}{side}")
        texts = "; ".join(_describe_difference(grid, row, nfe) for row, nfe in rows)
        alt = f"Differences of {grid.full_label} from {baseline}, with 95 % intervals. {texts}."
        return drawing.finish(figure, name, alt)


def _describe_difference(grid: ComparedGrid, row: Contrast, nfe: int) -> str:
    cell = row.cells[nfe]
    ends = f"{grid.number(cell.low, '+')} to {grid.number(cell.high, '+')}"
    method = "" if row.subject == row.key.method else f", {row.key.method}"
    return f"{row.subject}{method} at {nfe}: {grid.number(cell.value, '+')} ({ends}), {grid.verdict(cell)}"
