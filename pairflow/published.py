"""The trained models that come with pairflow: one folder each, with a card, in `models` (docs/molecules.md).

Their averaged weights are stored in half precision; computations use single precision.
"""

import re
from pathlib import Path

from pairflow.errors import InputError
from pairflow.files import checked_path

FOLDER = Path(__file__).parent / "models"
CARD = "README.md"  # in a model's folder


def locate(model: str | Path, base: Path = Path()) -> Path:
    """Return the folder of `model`: a name of a model that comes with pairflow, or a path relative to `base`.

    Raises InputError if both exist, or if it is not a path.
    """
    folder = base / checked_path("model", model)
    if str(model) not in names():
        return folder
    if folder.exists():
        raise InputError(
            f"{model}: a model of pairflow has this name, and so has a folder here; rename the folder"
        )
    return FOLDER / model


def names() -> list[str]:
    """Return the names of the models that come with pairflow."""
    return sorted(path.parent.name for path in FOLDER.glob("*/model.json"))


def summary(name: str) -> str:
    """Return the first paragraph of a model's card, without the targets of its links."""
    card = (FOLDER / name / CARD).read_text(encoding="utf-8")
    paragraph = card.partition("\n# ")[2].split("\n\n")[1]  # after the header, and the title
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph)


def name_of(folder: Path) -> str | None:
    """Return the name of the model in `folder` if it comes with pairflow, else None."""
    return folder.name if folder.parent == FOLDER else None
