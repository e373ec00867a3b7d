"""Describes an experiment's training molecules in a file, which is written once and read by evaluations."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pairflow import rng
from pairflow.artifacts import Metadata, digest, read_table
from pairflow.artifacts.contents import COMPUTED, require_columns
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.measures.chemistry import TrainingMolecules
from pairflow.kinds.molecules.settings import DESCRIBED_ROWS
from pairflow.kinds.molecules.structures.descriptors import PROPERTIES, STRUCTURES, tabulate
from pairflow.kinds.molecules.structures.similarity import BITS, Neighbours
from pairflow.kinds.molecules.structures.standardise import identify
from pairflow.runtime.progress import bar

PROPERTY_ROWS = 20_000  # most training molecules whose properties are computed, because QED takes time
CHEMNET_ROWS = 10_000  # most training molecules whose ChemNet features are computed
CHEMNET_DIMENSION = 512
_CHEMNET_CHUNK = 1024  # molecules between two updates of the progress bar


@dataclass(frozen=True)
class DatasetMolecules:
    """The molecules of a data set, read from the file `path` with its metadata.

    The texts are Arrow arrays, because a text takes twice the memory in Python. Three arrays have an entry
    for each row of the data set: `smiles` (canonical), `keys` (what identifies the molecule by the rule
    `identity`) and `sides` (the side of the split: train, validation or reference). `trained` and `held_out`
    have the SMILES of each distinct training or held-out molecule once.
    """

    smiles: pa.ChunkedArray
    keys: pa.ChunkedArray
    sides: pa.ChunkedArray
    trained: pa.Array
    held_out: pa.Array
    metadata: Metadata
    path: Path

    @classmethod
    def read(cls, path: Path) -> "DatasetMolecules":
        table, metadata = read_table(path, "smiles")
        smiles, sides = table["smiles"], table["split"]
        keys = table["key"] if "key" in table.column_names else smiles
        trained, held_out = (_distinct(smiles, keys, pc.equal(sides, s)) for s in ("train", "validation"))
        if not len(trained):
            raise InputError(f"{path}: holds no training molecules")
        return cls(smiles, keys, sides, trained, held_out, metadata, path)

    @property
    def identity(self) -> str:
        """The rule that says which molecules count as the same: "smiles", "inchikey" or "tautomer"."""
        return self.metadata.parameters.get("identity", "smiles")

    @property
    def rule(self) -> dict[str, str]:
        """The rule `identity` as a parameter for the metadata of files; empty for the usual rule "smiles"."""
        return {} if self.identity == "smiles" else {"identity": self.identity}

    def __contains__(self, smiles: str) -> bool:
        return identify(smiles, self.identity) in self._known

    def known_among(self, keys: Iterable[str], side: str = "") -> frozenset[str]:
        """Return the `keys` that identify a molecule of the data set or, if `side` is given, of one side of
        its split."""
        return common(keys, self.keys.filter(pc.equal(self.sides, side)) if side else self.keys)

    @property
    def described(self) -> list[str]:
        """The SMILES of the training molecules that samples are compared with: of all, or of DESCRIBED_ROWS
        drawn at random."""
        return draw(self.trained, DESCRIBED_ROWS)

    @cached_property
    def _known(self) -> KnownMolecules:
        return KnownMolecules.from_smiles(text for part in self.keys.chunks for text in part.to_pylist())

    def describes(self, kind: str, **parameters: Any) -> Metadata:
        """Return the metadata of a file that is made from these molecules and nothing else. `kind` is what
        the file holds, such as "ChemNet statistics"; `parameters` are further ones."""
        return Metadata(
            kind=kind,
            vocabulary=self.metadata.vocabulary,
            parameters={"molecules": len(self.trained), **parameters},
            inputs={"smiles": digest(self.path)},
        )

    def require(self, metadata: Metadata, path: Path) -> None:
        """Raise InputError unless the file `path` was made from these molecules."""
        if metadata.inputs.get("smiles") != digest(self.path):
            raise InputError(f"{path}: was made from a file other than {self.path}")


@dataclass(frozen=True)
class TrainingNeighbours:
    """The distinct training molecules, among which the one most similar to a molecule is found. `smiles`
    (canonical), `names` and `neighbours` (fingerprints) have the same order."""

    smiles: Sequence[str]
    names: Sequence[str]
    neighbours: Neighbours

    @classmethod
    def read(cls, path: Path, threads: int = 1, progress: bool = False) -> "TrainingNeighbours":
        """Read the training molecules of a file `smiles.parquet`."""
        frame = read_table(path, "smiles")[0].to_pandas()
        trained = frame[frame["split"] == "train"].drop_duplicates("smiles")
        smiles = [*trained["smiles"]]
        names = [*trained["name"]] if "name" in trained else [""] * len(trained)
        return cls(
            smiles, names, Neighbours(tabulate(["fingerprint"], smiles, threads, progress)["fingerprint"])
        )

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {smiles: row for row, smiles in enumerate(self.smiles)}

    def describe(self, smiles: str) -> dict[str, float | str]:
        """Find the training molecule nearest to the molecule with the canonical SMILES `smiles`.

        Returns `nearest` (canonical SMILES), `nearest_name` and `similarity`. A training molecule is nearest
        to itself. Both texts are empty if no training molecule shares a bit of the fingerprint with the
        molecule.
        """
        row, similarity = self._rows.get(smiles, -1), 1.0
        if row < 0:
            [similarity], [row] = self.neighbours.nearest(tabulate(["fingerprint"], [smiles])["fingerprint"])
        nearest, name = (self.smiles[row], self.names[row]) if row >= 0 else ("", "")
        return {"nearest": nearest, "nearest_name": name, "similarity": float(similarity)}


def _distinct(smiles: pa.ChunkedArray, keys: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.Array:
    """Return the SMILES of the molecules that the mask `rows` selects; of several with the same entry in
    `keys`, the first."""
    if keys is smiles:
        return pc.unique(smiles.filter(rows))
    first = ~keys.filter(rows).to_pandas().duplicated()
    return smiles.filter(rows).filter(pa.array(first)).combine_chunks()


def draw(smiles: pa.Array, most: int) -> list[str]:
    """Return `smiles`, or `most` of them drawn at random, in their order. Every call draws the same."""
    return smiles.take(some(len(smiles), most)).to_pylist()


def common(texts: Iterable[str], smiles: pa.Array | pa.ChunkedArray) -> frozenset[str]:
    """Return the texts that are in `smiles`."""
    return frozenset(smiles.filter(pc.is_in(smiles, pa.array({*texts}, smiles.type))).to_pylist())


def some(count: int, most: int) -> np.ndarray:
    """Return the numbers 0 to count - 1, or `most` of them drawn at random, ascending. Every call draws the
    same."""
    return np.sort(rng.random_order(rng.stream_seed("molecules"), count)[:most])


def describe_training(known: DatasetMolecules, threads: int, progress: bool) -> tuple[pa.Table, Metadata]:
    """Return a table with a row for each of the training molecules `known.described`, and the table's
    metadata. The columns are smiles, scaffold, fingerprint (256 bytes) and PROPERTIES, which only
    PROPERTY_ROWS of the molecules have."""
    described = known.described
    rows = some(len(described), PROPERTY_ROWS)
    properties = tabulate(PROPERTIES, [described[row] for row in rows], threads, progress).set_axis(rows)
    molecules = tabulate(STRUCTURES, described, threads, progress).join(properties)
    columns = {name: pa.array(molecules[name], from_pandas=True) for name in PROPERTIES}
    fingerprints = pa.array([*molecules["fingerprint"]], pa.binary(BITS // 8))
    scaffolds = pa.array([*molecules["scaffold"]], pa.string())
    table = {"smiles": described, "scaffold": scaffolds, "fingerprint": fingerprints, **columns}
    return pa.table(table), known.describes("training molecules", properties_of=len(rows))


def read_training(path: Path, known: DatasetMolecules) -> TrainingMolecules:
    """Read the training molecules, with fingerprints, scaffolds and properties, from the file `path`, a
    table of `describe_training`. Raises InputError if it was made from molecules other than `known`."""
    table, metadata = read_table(path, "training molecules")
    known.require(metadata, path)
    require_columns(path, table, dict.fromkeys(PROPERTIES, COMPUTED), metadata.kind)
    properties = table.select([*PROPERTIES]).to_pandas().dropna().to_numpy()
    neighbours = Neighbours(table["fingerprint"].to_pylist())
    return TrainingMolecules(neighbours, Counter(table["scaffold"].to_pylist()), properties)


def chemnet_features(smiles: Sequence[str], device: str = "cpu", progress: bool = False) -> np.ndarray:
    """Compute ChemNet's last hidden layer (M, 512) for M canonical SMILES. The Fréchet ChemNet Distance
    (Preuer et al. 2018) compares these features. Raises InputError if the optional package `fcd` is not
    installed."""
    try:
        import fcd
    except ImportError:
        raise InputError('fcd: the package is not installed; try: pip install "pairflow[fcd]"') from None
    parts = [np.empty((0, CHEMNET_DIMENSION), np.float32)]
    with warnings.catch_warnings(), bar(total=len(smiles), desc="ChemNet", quiet=not progress) as molecules:
        warnings.simplefilter("ignore")  # about long strings, and deprecated functions of NumPy
        network = fcd.load_ref_model()
        for first in range(0, len(smiles), _CHEMNET_CHUNK):
            chunk = list(smiles[first : first + _CHEMNET_CHUNK])
            parts.append(fcd.get_predictions(network, chunk, n_jobs=0, device=device))
            molecules.update(len(chunk))
    return np.concatenate(parts)
