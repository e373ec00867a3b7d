"""Draws galleries of sampled molecules."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from rdkit import Chem, rdBase

from pairflow import rng
from pairflow.kinds.molecules.page.drawing import draw
from pairflow.report.colours import themed

_SIZE = (200, 147)


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
    """Draw up to `number` of the valid samples, chosen at random by `seed`; duplicates are not removed."""
    with rdBase.BlockLogs():
        parsed = {text: Chem.MolFromSmiles(text) for text in set(samples) if text}
        valid = [text for text in samples if parsed.get(text) is not None]
        chosen = rng.random_order(rng.stream_seed(seed, "gallery"), len(valid))[:number]
        molecules = [Molecule(valid[i], _draw(parsed[valid[i]])) for i in chosen]
    return Gallery(molecules, len(valid), sum(not text for text in samples), len(samples))


def _draw(molecule: Chem.Mol) -> Markup:
    svg = draw(molecule, *_SIZE, bond=30, line=1.6)
    width, height = _SIZE
    # Without a width and a height in pixels, the drawing scales with the page.
    return Markup(themed(svg.replace(f"width='{width}px' height='{height}px' ", "aria-hidden='true' ", 1)))
