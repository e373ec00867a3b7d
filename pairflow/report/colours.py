"""Colours of the pages and their charts, from the palette of Okabe and Ito for colour-blind readers.

Charts use the hexadecimal values below. `themed` replaces them by variables of the page's style sheet,
which has a light and a dark value for each.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pairflow.config import BASES

HEX = {
    "blue": "#0072b2",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "green": "#009e73",
    "vermillion": "#d55e00",
    "purple": "#cc79a7",
    "yellow": "#f0e442",
    "ink": "#1d2127",
    "muted": "#59626d",
    "grey": "#858d97",
    "rule": "#d9dde2",
    "page": "#fdfdfc",
}
_NAMES = {value: name for name, value in HEX.items()}
_ANY = re.compile("|".join(HEX.values()), re.IGNORECASE)


@dataclass(frozen=True)
class Style:
    """How a method looks in figures: a key of `HEX`, matplotlib's marker (unfilled if `hollow`) and line."""

    colour: str
    marker: str
    line: str | tuple = "-"
    hollow: bool = False

    @property
    def hex(self) -> str:
        return HEX[self.colour]

    @property
    def options(self) -> dict[str, object]:
        """The keyword arguments with which matplotlib draws a line in this style."""
        face = HEX["page"] if self.hollow else self.hex
        return {"color": self.hex, "marker": self.marker, "ls": self.line, "mfc": face}


@dataclass(frozen=True)
class Fill:
    """How an area looks: a key of `HEX`, and matplotlib's hatch, a pattern of lines."""

    colour: str
    hatch: str = ""

    @property
    def options(self) -> dict[str, object]:
        """The keyword arguments with which matplotlib fills an area in this style."""
        edge = {"edgecolor": HEX["page"], "linewidth": 0.6}
        return {"facecolor": HEX[self.colour], "hatch": self.hatch, **edge}


Choice = TypeVar("Choice")
_METHOD = re.compile(r"(?P<base>[a-z]+)(-sub(?P<subsets>[0-9]+))?(?P<rounds>(\+[a-z]+)*)")
_STYLES = {name: base.style for name, base in BASES.items() if base.style}
_BASELINES = {name for name, base in BASES.items() if base.uninformed}
_ROUNDS: dict[str, tuple[str, str | tuple]] = {
    "+dcd": ("v", "--"),
    "+rf": ("D", "-."),
    "+redi": ("D", "-."),
    "+redi+redi": ("P", (0, (6, 1.2, 1, 1.2, 1, 1.2))),
    "+redi+redi+redi": ("*", (0, (1.2, 1.2))),
}
_SUBSETS = ("p", "h", "<", ">", "d")
_OTHER: list[tuple[str, str | tuple]] = [
    (marker, line) for line in ((0, (8, 2)), (0, (3, 3))) for marker in ("d", "p", "h", "<", ">", "8")
]


def style(method: str) -> Style:
    """Return a method's style: its base sets the colour, and distillations the line and a hollow marker.

    A method that pairs in subsets (`-sub<number>`) is orange, with a marker by the number of subsets. Bases
    and series of distillations without a reserved style get one by a hash of their name, so that a method
    looks the same on all pages.
    """
    match = _METHOD.fullmatch(method)
    if match is None or match["base"] not in _STYLES:
        return Style(_pick(method, ("sky", "yellow", "ink")), *_pick(method, _OTHER))
    colour, marker = _STYLES[match["base"]]
    if match["subsets"]:
        colour, marker = "orange", _SUBSETS[int(match["subsets"]).bit_length() % len(_SUBSETS)]
    if not match["rounds"]:
        return Style(colour, marker)
    round_marker, line = _ROUNDS.get(match["rounds"]) or _pick(match["rounds"], _OTHER)
    return Style(colour, marker if match["subsets"] else round_marker, line, hollow=True)


def contrast(methods: Iterable[str]) -> Callable[[str], Style]:
    """Return a function from a method to its style in a chart of results, where baselines are grey.

    Baselines are methods that learn from sources (noise rows) that are independent of the data. If all
    methods are baselines, they keep their colours.
    """

    def is_baseline(method: str) -> bool:
        return method.partition("+")[0] in _BASELINES

    if all(map(is_baseline, methods)):
        return style
    return lambda method: replace(style(method), colour="grey") if is_baseline(method) else style(method)


def _pick(name: str, choices: Sequence[Choice]) -> Choice:
    return choices[zlib.crc32(name.encode()) % len(choices)]


def themed(svg: str) -> str:
    """Replace the colours of an SVG by variables of the page's style sheet, with the colours as fallback."""
    return _ANY.sub(lambda match: f"var(--{_NAMES[match[0].lower()]}, {match[0].lower()})", svg)
