"""The training molecule that is most similar to a molecule: which one, under which name, and how similar."""

from pathlib import Path

from pairflow.artifacts import read_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.descriptors import fingerprints
from pairflow.kinds.molecules.similarity import Neighbours
from pairflow.plan import paths

SMILES = "smiles.parquet"


class TrainingNeighbours:
    """Training molecules of a file `smiles.parquet`, to look up the most similar one.

    The similarity is Tanimoto's, of Morgan fingerprints (radius 2, 2,048 bits), as in `metrics.similarity`.
    """

    def __init__(self, path: Path, threads: int = 1, progress: bool = False):
        frame = read_table(path, "smiles")[0].to_pandas()
        trained = frame[frame["split"] == "train"].drop_duplicates("smiles")
        self.smiles = list(trained["smiles"])
        self.names = list(trained["name"]) if "name" in trained else [""] * len(trained)
        self._rows = {smiles: row for row, smiles in enumerate(self.smiles)}
        self._neighbours = Neighbours(fingerprints(self.smiles, threads, progress))

    def describe(self, smiles: str) -> dict[str, float | str]:
        """`nearest` (canonical SMILES), `nearest_name` and `similarity` for a molecule's canonical SMILES.

        A training molecule is nearest to itself. Texts are empty where no molecule shares a bit.
        """
        row, similarity = self._rows.get(smiles, -1), 1.0
        if row < 0:
            [similarity], [row] = self._neighbours.nearest(fingerprints([smiles]))
        any_like_it = row >= 0
        return {
            "nearest": self.smiles[row] if any_like_it else "",
            "nearest_name": self.names[row] if any_like_it else "",
            "similarity": float(similarity),
        }


def training_smiles(folder: Path) -> Path:
    """The file of the training molecules of the model in `folder`: there, or in its experiment's data.

    Raises InputError if it is in neither place.
    """
    beside = folder / SMILES
    inside = [*folder.resolve().parents][2:3]  # results/<experiment>, of its seed0/models/<method>
    present = [path for path in (beside, *(paths.data(root, SMILES) for root in inside)) if path.is_file()]
    if not present:
        raise InputError(
            f"{beside}: no such file; --nearest needs the training molecules: "
            f"copy {paths.data(Path(), SMILES)} of the experiment there"
        )
    return present[0]
