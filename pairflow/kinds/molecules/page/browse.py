"""Writes a page to look through molecules, in one file: it shows and filters structures, and saves a
selection."""

import csv
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from pandas.api.types import is_numeric_dtype
from rdkit import rdBase

from pairflow.artifacts import Metadata
from pairflow.errors import InputError
from pairflow.kinds.molecules.page.drawing import SIZE, draw_compact
from pairflow.kinds.molecules.settings.demand import MoleculeDemand
from pairflow.kinds.molecules.structures.descriptors import DIGITS, EXCLUDED
from pairflow.kinds.molecules.structures.standardise import parse
from pairflow.report.templates import make_environment

_FOLDER = Path(__file__).parent
_LABELS = {
    "smiles": "SMILES",
    "qed": "QED",
    "sa": "SA score",
    "logp": "logP",
    "weight": "weight (g/mol)",
    "inchikey": "InChIKey",
    "nearest": "nearest training molecule",
    "nearest_name": "name of the nearest",
    "similarity": "similarity to the nearest",
    "seed_similarity": "similarity to the seed",
}
_MEANINGS = {
    "plausible": "size, rings, bonded atoms, alerts and SA score are usual among training molecules",
    "qed": "drug-likeness, from 0 to 1",
    "sa": "synthetic accessibility, from 1 (easy) to 10 (hard)",
    "logp": "calculated octanol-water partition (logarithm)",
    "noise": "the share of the seed's tokens that was replaced by noise",
    "new_rings": "ring systems that no training molecule has",
    "new_atoms": "atoms with bonds and neighbours that no training molecule has",
    "severity": f"the number of groups that NIBR's filters flag; {EXCLUDED} means: do not screen",
    "alerts": "groups that PAINS, NIH or BRENK warn of, and odd bonds; common ones can be plausible",
    "chembl_alerts": "further alerts, which do not count for plausible",
    "similarity": "Tanimoto similarity of Morgan fingerprints, from 0 to 1",
    "seed_similarity": "Tanimoto similarity of Morgan fingerprints, from 0 to 1",
    "seed_edit": "the number of tokens that differ from the seed's",
}
_EVIDENT = ("count", "properties", "nearest")
_CHOICES = {"yes", "no"}


def write_page(path: Path, table: pd.DataFrame, metadata: Metadata, texts: pd.DataFrame) -> None:
    """Write the molecules of `table` as an HTML page that opens offline. `texts` is the same table as CSV
    files show it; the page saves these texts. `metadata` says how the molecules were made."""
    page = make_environment().get_template("kinds/molecules/page/browse.html")
    script = Markup((_FOLDER / "browse.js").read_text(encoding="utf-8"))
    content = htmlsafe_json_dumps(_collect(table, texts), separators=(",", ":"))
    meanings = {_label(name): text for name, text in _MEANINGS.items() if name in table}
    settings = _list_settings(metadata)
    html = page.render(count=len(table), settings=settings, meanings=meanings, script=script, content=content)
    path.write_text(html, encoding="utf-8")


def _list_settings(metadata: Metadata) -> list[str]:
    """List the settings by which the molecules were made, each in words. Left out are settings at their
    defaults, and those that the page shows elsewhere."""
    defaults = {name: field.default for name, field in MoleculeDemand.model_fields.items()}
    changed = {
        name: value
        for name, value in metadata.parameters.items()
        if name not in _EVIDENT and value not in (None, [], defaults.get(name))
    }
    texts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in changed.items()}
    words = {name.replace("_", " "): text for name, text in texts.items()}
    return [
        f"{'no ' * (text is False)}{name}" if isinstance(text, bool) else f"{name} {text}"
        for name, text in words.items()
    ]


def _collect(table: pd.DataFrame, texts: pd.DataFrame) -> dict[str, object]:
    """Collect the data of the page's script: the columns of `table`, drawings by SMILES, and `texts` as the
    lines of a CSV file."""
    columns = [{"name": name, "label": _label(name), **_read(name, table[name])} for name in table]
    head, *lines = map(_write_line, [[*table], *texts.itertuples(index=False)])
    smiles = {
        text for name in ("smiles", "nearest", "seed") if name in table for text in table[name].dropna()
    }
    return {"columns": columns, "head": head, "lines": lines, "size": SIZE, "drawings": _draw_all(smiles)}


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def _write_line(cells: Iterable[object]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _read(name: str, column: pd.Series) -> dict[str, object]:
    """Describe the column `name` for the page's script: its kind (number, list, choice or text) and its
    values. A missing number is None, and a missing text is empty."""
    known = column.dropna().infer_objects()
    if is_numeric_dtype(known) and len(known):
        values = [None if pd.isna(value) else round(value, DIGITS.get(name, 4)) for value in column.tolist()]
        return {"kind": "number", "digits": DIGITS.get(name), "values": values}
    texts = ["" if pd.isna(value) else str(value) for value in column]
    if name == "alerts":
        return {"kind": "list", "values": [list(filter(None, text.split("; "))) for text in texts]}
    return {"kind": "choice" if len(known) and _CHOICES.issuperset(known) else "text", "values": texts}


def _draw_all(texts: set[str]) -> Mapping[str, object]:
    """Map each of the SMILES `texts` to its drawing; strings that RDKit cannot read are left out."""
    drawings = {}
    with rdBase.BlockLogs():
        for text in sorted(texts):
            with suppress(InputError):
                drawings[text] = draw_compact(parse(text))
    return drawings
