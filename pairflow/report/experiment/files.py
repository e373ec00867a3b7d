"""Saves the page's figures as files for a paper, one column wide: charts as SVG and PDF, images as PNG."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import matplotlib
from fontTools.subset import Options
from matplotlib.figure import Figure
from PIL import Image

from pairflow.pixels import Png
from pairflow.report.drawing import RC, Picture
from pairflow.report.words import name_file

_RC = RC | {"pdf.fonttype": 42, "svg.fonttype": "path", "savefig.facecolor": "white"}
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
# A PDF does not use the tables that position glyphs. To reduce them took a third of the time of saving.
getattr(Options, "_drop_tables_default", []).extend(["GDEF", "GPOS", "GSUB"])


def save(parts: Mapping[str, object], folder: Path) -> None:
    """Save every figure of a page's parts (the result of `page.draw`), with the same bytes every time.

    Charts become `<name>.svg` and `<name>.pdf` with embedded fonts in the colours of the page's light theme,
    and images `<name>.png`, enlarged as on the page. Saving adds legends to the charts: it must come last.
    """
    for name, figure in find_figures(parts):
        if isinstance(figure, Png):
            Image.fromarray(figure.pixels).save(folder / f"{name}.png", optimize=True)
        else:
            save_chart(figure, folder / name)


def find_figures(part: object, keys: tuple[object, ...] = ()) -> Iterator[tuple[str, Picture | Png]]:
    """Yield (name of its files, figure) for each figure inside `part`, such as all parts of a page.

    A chart has a name of its own. The name of an image is made of the keys that lead to it, without the
    first; `keys` are those that lead to `part`.
    """
    if isinstance(part, Picture):
        yield part.name, part
    elif isinstance(part, Png):
        yield "-".join(name_file(str(key)) for key in keys[1:]), part
    elif isinstance(part, Mapping):
        for key, value in part.items():  # a key `png` adds nothing to the name
            yield from find_figures(value, keys if key == "png" else (*keys, key))
    elif isinstance(part, list | tuple):
        for number, value in enumerate(part):
            yield from find_figures(value, (*keys, number))
    elif is_dataclass(part):
        for field in fields(part):
            yield from find_figures(getattr(part, field.name), keys)


def save_chart(picture: Picture, path: Path) -> None:
    """Write `<path>.svg` and `<path>.pdf`, on white, with a legend below unless names are in the drawing."""
    with matplotlib.rc_context(_RC):
        if not picture.named:
            _add_legend(picture.figure)
        picture.figure.set_layout_engine("none")  # the layout is done, and takes as long as the drawing
        for kind, metadata in _UNDATED.items():
            picture.figure.savefig(f"{path}.{kind}", metadata=metadata)


def _add_legend(figure: Figure) -> None:
    """Add a legend below, enlarge the figure by its height, and lay the figure out again."""
    width, height = figure.get_size_inches()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    side = "lower" if len(figure.axes) == 1 else "upper"  # panels have a label below
    columns = max(1, 50 // (10 + max(map(len, labels), default=0)))  # about 50 characters fit into a row
    options = {"ncols": columns, "handlelength": 2.6, "frameon": False, "borderaxespad": 0}
    legend = figure.legend(handles, labels, loc=f"outside {side} center", **options)
    figure.set_size_inches(width, height + legend.get_window_extent().height / figure.dpi)
    figure.draw_without_rendering()
