"""Draws structures of molecules with RDKit, in the colours of the pages, and galleries of samples."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.colors import to_rgb
from rdkit import Chem, rdBase
from rdkit.Chem.Draw import rdMolDraw2D

from pairflow import rng
from pairflow.report.colours import HEX, themed

_ATOMS = {-1: "ink", 6: "ink", 7: "blue", 8: "vermillion", 9: "green", 16: "orange", 17: "green"}
_COLOURS = {value.upper(): name for name, value in HEX.items()}
_PROPERTY = re.compile(r"([a-z-]+):([^;]+)")
_PART = re.compile(r"([A-Z]) ?([-\d., ]*)")
_LETTER = 0.047  # least height of a letter, as a share of a drawing's width
_GALLERY = (200, 147)  # width and height of a drawing in a gallery
SIZE = (600, 440)  # of a compact drawing, whose coordinates are whole numbers
Shapes = list[list[Any]]


def draw(molecule: Chem.Mol, width: int, height: int, bond: float, line: float, text: bool = False) -> str:
    """Draw a structure as an SVG element of `width` times `height` pixels. Bonds have at most the length
    `bond`, and lines the width `line`. Letters are text elements if `text`, else paths."""
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

    Returns three lists: lines, areas and letters. Lines and areas have an entry [colour, path] for each
    colour; letters have an entry [colour, size, x, y, letter] for each letter.
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


@dataclass(frozen=True)
class Molecule:
    """A valid sample and its drawing."""

    smiles: str
    svg: Markup


@dataclass(frozen=True)
class Gallery:
    """Drawings of some valid samples (`molecules`), and the numbers of valid, empty and all samples."""

    molecules: list[Molecule]
    valid: int
    empty: int
    count: int


def draw_gallery(samples: Sequence[str], number: int, seed: int) -> Gallery:
    """Draw up to `number` of the valid samples, chosen at random by `seed`; duplicates are not removed.
    `samples` are SMILES, which may be empty or invalid."""
    with rdBase.BlockLogs():
        parsed = {text: Chem.MolFromSmiles(text) for text in set(samples) if text}
        valid = [text for text in samples if parsed.get(text) is not None]
        chosen = rng.random_order(rng.stream_seed(seed, "gallery"), len(valid))[:number]
        molecules = [Molecule(valid[i], _draw_for_gallery(parsed[valid[i]])) for i in chosen]
    return Gallery(molecules, len(valid), sum(not text for text in samples), len(samples))


def _draw_for_gallery(molecule: Chem.Mol) -> Markup:
    svg = draw(molecule, *_GALLERY, bond=30, line=1.6)
    width, height = _GALLERY
    # Without a width and a height in pixels, the drawing scales with the page.
    return Markup(themed(svg.replace(f"width='{width}px' height='{height}px' ", "aria-hidden='true' ", 1)))
