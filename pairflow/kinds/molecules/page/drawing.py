"""Draws structures of molecules with RDKit, in the colours of the pages."""

import re
from typing import Any
from xml.etree import ElementTree

from matplotlib.colors import to_rgb
from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D

from pairflow.report.colours import HEX

_ATOMS = {-1: "ink", 6: "ink", 7: "blue", 8: "vermillion", 9: "green", 16: "orange", 17: "green"}
_COLOURS = {value.upper(): name for name, value in HEX.items()}
_PROPERTY = re.compile(r"([a-z-]+):([^;]+)")
_PART = re.compile(r"([A-Z]) ?([-\d., ]*)")
_LETTER = 0.047  # least height of a letter, as a share of a drawing's width
SIZE = (600, 440)  # of a compact drawing, whose coordinates are whole numbers
Shapes = list[list[Any]]


def draw(molecule: Chem.Mol, width: int, height: int, bond: float, line: float, text: bool = False) -> str:
    """Draw a structure as an SVG element. Bonds have at most the length `bond`, and lines the width `line`.
    Letters are text elements if `text`, else paths."""
    canvas = rdMolDraw2D.MolDraw2DSVG(width, height, -1, -1, text)
    options: Any = canvas.drawOptions()  # RDKit's stubs give every option the type of all of them
    options.clearBackground = False
    options.fixedBondLength = bond
    options.bondLineWidth = line
    options.minFontSize = round(_LETTER * width)
    options.setAtomPalette({number: to_rgb(HEX[name]) for number, name in _ATOMS.items()})
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    drawn = canvas.GetDrawingText()
    return drawn[drawn.index("<svg") :]


def draw_compact(molecule: Chem.Mol) -> list[Shapes]:
    """Draw a structure in a tenth of the bytes of SVG, for a script that draws it on a canvas of SIZE.

    Returns lines, areas and letters. Lines and areas are [colour, path], one for each colour; letters are
    [colour, size, x, y, letter].
    """
    paths: list[dict[str, str]] = [{}, {}]
    letters: Shapes = []
    for shape in ElementTree.fromstring(draw(molecule, *SIZE, bond=56, line=3, text=True)):
        if "class" not in shape.attrib:
            continue  # the corner between two bonds, which round ends of lines fill as well
        look = dict(_PROPERTY.findall(shape.get("style", "")))
        filled = look.get("fill", "none") != "none"
        colour = _COLOURS.get(look["fill" if filled else "stroke"], "ink")
        if shape.tag.endswith("path"):
            paths[filled][colour] = paths[filled].get(colour, "") + _shorten(shape.get("d", ""))
        else:
            size = round(float(look["font-size"].removesuffix("px")))
            x, y = (round(float(shape.get(name, "0"))) for name in "xy")
            letters.append([colour, size, x, y, shape.text or ""])
    lines, areas = ([[*each] for each in kind.items()] for kind in paths)
    return [lines, areas, letters]


def _shorten(path: str) -> str:
    """Round an SVG path to whole coordinates, and make each line relative to the point before it."""
    short, here = "", (0, 0)
    for letter, numbers in _PART.findall(path):
        if letter == "Z":
            short += "z"
            continue
        x, y = (round(float(number)) for number in numbers.split(","))
        step = (x, y) if letter == "M" else (x - here[0], y - here[1])
        short += (f"M{step[0]} {step[1]}" if letter == "M" else f"l{step[0]} {step[1]}").replace(" -", "-")
        here = x, y
    return short
