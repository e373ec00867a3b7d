"""Colours of the page and of everything drawn on it: Okabe and Ito's, told apart by colour-blind readers too.

Drawings are made with the hexadecimal values below; `themed` then hands each one over to the page's style
sheet, which has a light and a dark value for it.
"""

import re
import zlib
from dataclasses import dataclass

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
    "rule": "#d9dde2",
}
_NAMES = {value: name for name, value in HEX.items()}
_ANY = re.compile("|".join(HEX.values()), re.IGNORECASE)


@dataclass(frozen=True)
class Style:
    """How one method looks in every figure: name of a colour, matplotlib's marker and line style."""

    colour: str
    marker: str
    line: str = "-"

    @property
    def hex(self) -> str:
        return HEX[self.colour]


_KNOWN = {
    "pairflow": Style("vermillion", "o"),
    "udlm": Style("blue", "s"),
    "random": Style("green", "^"),
    "mdlm": Style("purple", "D"),
}
_OTHER = [
    Style(colour, marker, line)
    for line in ("--", "-.")
    for marker in ("v", "P", "X", "<", ">", "p", "h")
    for colour in ("orange", "sky", "yellow", "ink")
]


def style(method: str) -> Style:
    """The style of a method; an unknown name always gets the same one too, in none of the known colours."""
    return _KNOWN.get(method) or _OTHER[zlib.crc32(method.encode()) % len(_OTHER)]


def themed(svg: str) -> str:
    """An SVG whose known colours come from the page's style sheet; outside of the page they stay."""
    return _ANY.sub(lambda match: f"var(--{_NAMES[match[0].lower()]}, {match[0].lower()})", svg)
