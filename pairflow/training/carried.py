"""What a model of molecules carries beside its weights, so that its folder alone makes new molecules.

    vocabulary.json    its symbols; model.json has the hash of their canonical JSON, as every token file has
    known.parquet      hashes of the data set's molecules (`data.known`); model.json has the file's SHA-256

A model of images or of bare token rows carries neither. Nothing here needs RDKit.
"""

import hashlib
import io
from pathlib import Path
from typing import Any

from pairflow.artifacts import Metadata, digest, read_table
from pairflow.data.known import KnownMolecules
from pairflow.errors import InputError

VOCABULARY, KNOWN = "vocabulary.json", "known.parquet"


def of_data(vocabulary: Path | None, smiles: Path | None, data: Path, metadata: Metadata) -> dict[str, bytes]:
    """The files of a new model, by name, from those of its data set; InputError unless they belong to `data`.

    `vocabulary` is the data set's vocabulary.json and `smiles` its smiles.parquet, where there are such;
    `metadata` is that of `data`, which the model learns.
    """
    files = {}
    if vocabulary:
        files[VOCABULARY] = _vocabulary(vocabulary, metadata.vocabulary, data)
    if smiles:
        table, origin = read_table(smiles, "smiles")
        origin.require_same_vocabulary(metadata.vocabulary, smiles, data)
        origin.require_same_data(metadata.data, smiles, data)
        content = io.BytesIO()
        known = KnownMolecules.from_smiles(table["smiles"].to_pylist())
        known.save(content, vocabulary=origin.vocabulary, inputs={"smiles": digest(smiles)})
        files[KNOWN] = content.getvalue()
    return files


def of_parent(folder: Path, facts: dict[str, Any]) -> dict[str, bytes]:
    """The files that a model hands on to those distilled from it, checked; `facts` is its model.json."""
    files = {}
    if (folder / VOCABULARY).is_file():
        files[VOCABULARY] = _vocabulary(folder / VOCABULARY, facts["vocabulary"], folder / "model.json")
    if "known" in facts:
        files[KNOWN] = known_file(folder, facts).read_bytes()
    return files


def described(files: dict[str, bytes]) -> dict[str, str]:
    """What model.json has to say of the files."""
    return {"known": hashlib.sha256(files[KNOWN]).hexdigest()} if KNOWN in files else {}


def vocabulary_file(folder: Path, facts: dict[str, Any]) -> Path:
    """A model's vocabulary.json; InputError if it is missing or not the model's."""
    path = folder / VOCABULARY
    if not path.is_file():
        raise InputError(f"{path}: no such file; copy it from the data folder that the model was trained on")
    _vocabulary(path, facts["vocabulary"], folder / "model.json")
    return path


def known_file(folder: Path, facts: dict[str, Any]) -> Path:
    """A model's known.parquet; InputError if it is missing, altered, or was never there."""
    path, description = folder / KNOWN, folder / "model.json"
    if "known" not in facts:
        raise InputError(f"{description}: tells of no {KNOWN}, so that nothing is known to be novel")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if digest(path) != facts["known"]:
        raise InputError(f"{path}: these are not the known molecules that {description} describes")
    return path


def _vocabulary(path: Path, expected: str | None, owner: Path) -> bytes:
    """A vocabulary file's content; its hash is that of its JSON without the line end (`Vocabulary.hash`)."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    content = path.read_bytes()
    found = hashlib.sha256(content.removesuffix(b"\n")).hexdigest()
    if found != expected:
        raise InputError(
            f"{path} and {owner} do not belong together: vocabulary {found[:12]} against {str(expected)[:12]}"
        )
    return content
