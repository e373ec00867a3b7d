"""The page's figures as files for a paper, a column wide: charts as SVG and PDF, pixels as PNG and PDF."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from pairflow.report.drawing import RC, WIDTH, Picture
from pairflow.report.experiment.quality import EvaluationBlock
from pairflow.report.words import name_file

_RC: dict[Any, Any] = RC | {"pdf.fonttype": 42, "svg.fonttype": "path", "savefig.facecolor": "white"}
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save(parts: Mapping[str, Any], folder: Path) -> None:
    """Every figure of a page's parts (`page.draw`) as `<name>.svg` or `.png` and `<name>.pdf`.

    They have the same bytes every time, embedded fonts, and the colours of the page's light theme.
    """
    for name, picture in name_charts(parts):
        save_chart(picture, folder / name)
    for name, pixels in name_pictures(parts):
        save_pixels(pixels, folder / name)


def name_charts(parts: Mapping[str, Any]) -> Iterator[tuple[str, Picture]]:
    """The name of each chart's files, and the chart."""
    for block in parts["blocks"]:
        yield from ((f"{name_file(block.name)}-{name}", picture) for name, picture in _block_charts(block))
    if coupling := parts["coupling"]:
        yield "coupling-distances", coupling["picture"]
        if coupling["jumps"]:
            yield "coupling-jumps", coupling["jumps"]
    if correlation := parts["correlation"]:
        yield "correlation", correlation["picture"]
    if training := parts["training"]:
        yield from (
            (f"training-{name_file(name)}", picture) for name, picture in training["pictures"].items()
        )
    yield from parts["page"].name_charts(parts["drawn"])


def _block_charts(block: EvaluationBlock) -> Iterator[tuple[str, Picture]]:
    for group in block.all_groups:
        charted = (table for table in group.tables if table.about.chart)
        yield from (
            (name_file(table.label), chart) for table, chart in zip(charted, group.charts, strict=True)
        )
    yield from block.details.name_charts()


def name_pictures(parts: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """The name of each picture's files, and its pixels (H, W, C) or (H, W), enlarged as the page does."""
    yield from parts["page"].name_pictures(parts["drawn"])


def save_chart(picture: Picture, path: Path) -> None:
    """`<path>.svg` and `<path>.pdf`, on white, with a legend below where the drawing has no names.

    This changes the drawing, so do it last.
    """
    with matplotlib.rc_context(_RC):
        if not picture.named:
            _add_legend(picture.figure)
        picture.figure.set_layout_engine("none")  # the layout is done, and takes as long as the drawing
        for kind, metadata in _UNDATED.items():
            picture.figure.savefig(f"{path}.{kind}", metadata=metadata)


def save_pixels(pixels: np.ndarray, path: Path) -> None:
    """`<path>.png` and `<path>.pdf`: no pixel is smoothed or lost."""
    Image.fromarray(pixels).save(f"{path}.png", optimize=True)
    height, width = pixels.shape[:2]
    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=(WIDTH, WIDTH * height / width))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="none")
        figure.savefig(f"{path}.pdf", metadata=_UNDATED["pdf"])


def _add_legend(figure: Figure) -> None:
    """Add a legend below and as much height, and lay the figure out again."""
    width, height = figure.get_size_inches()
    legend = _legend(figure)
    figure.set_size_inches(width, height + legend.get_window_extent().height / figure.dpi)
    figure.draw_without_rendering()


def _legend(figure: Figure) -> Legend:
    """A legend in as many columns as fit into the figure."""
    narrow = _in_columns(figure, 1)
    columns = int(figure.bbox.width // narrow.get_window_extent().width)
    if columns < 2:
        return narrow
    narrow.remove()
    return _in_columns(figure, columns)


def _in_columns(figure: Figure, columns: int) -> Legend:
    legend = figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc=f"outside {'lower' if len(figure.axes) == 1 else 'upper'} center",  # panels have a label below
        ncols=columns,
        frameon=False,
        handlelength=2.6,
        columnspacing=1.2,
        borderaxespad=0,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend
