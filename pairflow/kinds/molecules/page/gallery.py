"""Drawings of sampled molecules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.colors import to_rgb
from rdkit import Chem, rdBase
from rdkit.Chem.Draw import rdMolDraw2D

from pairflow import rng
from pairflow.report.colours import HEX, themed

_WIDTH, _HEIGHT = 150, 110
_ATOMS = {-1: "ink", 6: "ink", 7: "blue", 8: "vermillion", 9: "green", 16: "orange", 17: "green"}


@dataclass(frozen=True)
class Molecule:
    """A valid sample and its drawing."""

    smiles: str
    svg: Markup


@dataclass(frozen=True)
class Gallery:
    """Some valid samples, and the numbers of valid, empty and all samples."""

    molecules: list[Molecule]
    valid: int
    empty: int
    count: int


def draw_gallery(samples: Sequence[str], number: int, seed: int) -> Gallery:
    """Up to `number` of the valid samples, chosen at random by `seed`; duplicates are not removed."""
    with rdBase.BlockLogs():
        parsed = {text: Chem.MolFromSmiles(text) for text in set(samples) if text}
        valid = [text for text in samples if parsed.get(text) is not None]
        chosen = rng.random_order(rng.stream_seed(seed, "gallery"), len(valid))[:number]
        molecules = [Molecule(valid[i], _draw(parsed[valid[i]])) for i in chosen]
    return Gallery(molecules, len(valid), sum(not text for text in samples), len(samples))


def _draw(molecule: Chem.Mol) -> Markup:
    canvas = rdMolDraw2D.MolDraw2DSVG(_WIDTH, _HEIGHT)
    options: Any = canvas.drawOptions()  # RDKit's stubs are wrong about the types of options
    options.clearBackground = False
    options.fixedBondLength = 24
    options.bondLineWidth = 1.4
    options.setAtomPalette({number: to_rgb(HEX[name]) for number, name in _ATOMS.items()})
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    text = canvas.GetDrawingText()
    # An element that scales with the page.
    size = f"width='{_WIDTH}px' height='{_HEIGHT}px' "
    return Markup(themed(text[text.index("<svg") :].replace(size, "aria-hidden='true' ", 1)))
