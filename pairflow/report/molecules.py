"""Drawings of sampled molecules."""

from dataclasses import dataclass

from markupsafe import Markup
from rdkit import Chem, rdBase
from rdkit.Chem.Draw import rdMolDraw2D

from pairflow.report.colours import HEX, themed

_WIDTH, _HEIGHT = 150, 110
_ATOMS = {-1: "ink", 6: "ink", 7: "blue", 8: "vermillion", 9: "green", 16: "orange", 17: "green"}


@dataclass(frozen=True)
class Molecule:
    """A sample and its drawing; None where RDKit cannot read it, or where it is empty."""

    smiles: str
    svg: Markup | None


def first(samples: list[str], number: int) -> list[Molecule]:
    """The first samples in the order they were drawn, valid or not: nothing is picked by hand."""
    with rdBase.BlockLogs():
        return [Molecule(smiles, _draw(smiles)) for smiles in samples[:number]]


def _draw(smiles: str) -> Markup | None:
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or not molecule.GetNumAtoms():
        return None
    canvas = rdMolDraw2D.MolDraw2DSVG(_WIDTH, _HEIGHT)
    options = canvas.drawOptions()
    options.clearBackground = False
    options.fixedBondLength = 24
    options.bondLineWidth = 1.4
    options.setAtomPalette({number: _rgb(HEX[name]) for number, name in _ATOMS.items()})
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    return Markup(_embed(canvas.GetDrawingText()))


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(value / 255 for value in bytes.fromhex(colour[1:]))


def _embed(svg: str) -> str:
    """The drawing as an element that scales with the page."""
    svg = svg[svg.index("<svg") :]
    svg = svg.replace(f"width='{_WIDTH}px' height='{_HEIGHT}px' ", "aria-hidden='true' ", 1)
    return themed(svg)
