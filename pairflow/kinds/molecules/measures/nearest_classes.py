"""Measures whether samples follow a condition on a column of the user's table.

Nothing computes such a number for new molecules. The class of the nearest training molecule stands for it.
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
    """What samples were asked for by P columns, and the training molecules that have values of all of these.

    Attributes:
        targets: the numbers of the classes that each of B samples of a trial was asked for (B, P).
        classes: the numbers of the classes of each of T training molecules (T, P).
    """

    def __init__(self, asked: Mapping[Classes, np.ndarray], labels: np.ndarray, fingerprints: pd.Series):
        """`asked` has the labels (B,) of samples by each column. `labels` (M, P) and `fingerprints` (M,) are
        of training molecules."""
        self.targets = np.stack([*asked.values()], axis=1)
        valued = (labels < [len(column.names) for column in asked]).all(axis=1)
        self.classes, self._neighbours = labels[valued], Neighbours(fingerprints[valued])

    @classmethod
    def read(
        cls, asked: Mapping[Classes, np.ndarray], samples: Metadata, smiles: Path, molecules: Path, rows: Path
    ) -> "NearestClasses":
        """Read the training molecules: canonical SMILES, fingerprints (`molecules`) and labels (`rows`). Of a
        molecule in several rows the first one counts. Raises InputError if the files do not match."""
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
        """Return the row (V,) in `classes` of the training molecule nearest to each of V molecules, -1 for
        none."""
        return self._neighbours.nearest(fingerprints)[1]

    def measure(self, valid: np.ndarray, nearest: np.ndarray) -> dict[str, float]:
        """Compare what samples were asked for with their nearest training molecules.

        `valid` (B,) says which samples of a trial are valid, and `nearest` (V,) has the rows of `find` of the
        valid ones. Returns

        - `nearest_in_class`: the number of valid samples whose nearest training molecule is in the class that
          they were asked for, by all columns.
        - `nearest_by_chance`: the same number, expected if training molecules were drawn at random instead.
        """
        targets = self.targets[valid]
        without = np.full((1, targets.shape[1]), -1)  # no class
        met = (np.concatenate([self.classes, without])[nearest] == targets).all(axis=1)
        different, counts = np.unique(targets, axis=0, return_counts=True)
        chances = [_share((self.classes == classes).all(axis=1)) for classes in different]
        return {"nearest_in_class": int(met.sum()), "nearest_by_chance": float(counts @ np.array(chances))}


def _share(met: np.ndarray) -> float:
    return float(met.mean()) if len(met) else np.nan
