"""Measures whether samples follow a condition on a column of the user's table.

The value of such a column cannot be computed for a new molecule. The class of the nearest training molecule
is taken instead.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, label_array, read_table
from pairflow.data.classes import Classes, Properties
from pairflow.errors import InputError
from pairflow.kinds.molecules.structures.similarity import Neighbours


class NearestClasses:
    """The classes that samples were asked for by P columns, and the training molecules with a value in each
    column.

    Attributes:
        targets: the numbers of the classes that each of B samples of a trial was asked for (B, P).
        classes: the numbers of the classes of each of T training molecules (T, P).
    """

    def __init__(self, asked: Mapping[Classes, np.ndarray], labels: np.ndarray, fingerprints: pd.Series):
        """Keep the training molecules that have a value in each column of `asked`.

        `asked` maps each of P columns to the labels (B,), the numbers of the classes that the samples of a
        trial were asked for. `labels` (M, P) and `fingerprints` (M,) are of the training molecules.
        """
        self.targets = np.stack([*asked.values()], axis=1)
        valued = (labels < [len(column.names) for column in asked]).all(axis=1)
        self.classes, self._neighbours = labels[valued], Neighbours(fingerprints[valued])

    @classmethod
    def read(
        cls, asked: Mapping[Classes, np.ndarray], samples: Metadata, smiles: Path, molecules: Path, rows: Path
    ) -> "NearestClasses":
        """Read the training molecules from files: the canonical SMILES of the data set (`smiles`),
        fingerprints (`molecules`), and token rows with labels (`rows`). `asked` maps each column to the
        labels that samples were asked for, and `samples` is the metadata of the samples.

        If several rows have the same molecule, the first one counts. Raises InputError if the files do not
        match.
        """
        table, metadata = read_table(rows, "tokens")
        texts = read_table(smiles, "smiles")[0].select(["smiles", "split"]).to_pandas()
        labels, trained = label_array(table), pd.Index(texts["smiles"][texts["split"] == "train"])
        known = Properties.from_facts(metadata.condition)
        if labels is None or known is None or len(trained) != len(labels):
            raise InputError(f"{rows} and {smiles} do not match: expected the labels of the training rows")
        if metadata.condition != samples.condition:
            raise InputError(f"{rows}: its labels are of other classes than those that the model has learnt")
        described = read_table(molecules, "training molecules")[0].select(["smiles", "fingerprint"])
        frame = described.to_pandas()
        firsts = np.flatnonzero(~trained.duplicated())
        places = firsts[trained[firsts].get_indexer(pd.Index(frame["smiles"]))]
        chosen = [known.properties.index(column) for column in asked]
        return cls(asked, labels.reshape(len(labels), -1)[np.ix_(places, chosen)], frame["fingerprint"])

    def find(self, fingerprints: Iterable[bytes]) -> np.ndarray:
        """Return, for each of V `fingerprints`, the row in `classes` of the nearest training molecule (V,);
        -1 if no training molecule is similar."""
        return self._neighbours.nearest(fingerprints)[1]

    def measure(self, valid: np.ndarray, nearest: np.ndarray) -> dict[str, float]:
        """Compare the classes that samples were asked for with the classes of their nearest training
        molecules.

        `valid` (B,) says which samples of a trial are valid, and `nearest` (V,) has, for the valid ones, the
        row in `classes` of the nearest training molecule, -1 for none. Returns

        - `nearest_in_class`: the number of valid samples whose nearest training molecule is in the class that
          they were asked for, by all columns.
        - `nearest_by_chance`: the number expected if a random training molecule took the place of the nearest
          one.
        """
        targets = self.targets[valid]
        without = np.full((1, targets.shape[1]), -1)  # no class
        met = (np.concatenate([self.classes, without])[nearest] == targets).all(axis=1)
        different, counts = np.unique(targets, axis=0, return_counts=True)
        chances = [_share((self.classes == classes).all(axis=1)) for classes in different]
        return {"nearest_in_class": int(met.sum()), "nearest_by_chance": float(counts @ np.array(chances))}


def _share(met: np.ndarray) -> float:
    return float(met.mean()) if len(met) else np.nan
