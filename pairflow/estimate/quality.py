"""What quality to expect of an experiment on a user's molecules: that of the most similar one measured."""

from typing import NamedTuple

from pairflow.config import Experiment
from pairflow.data.source import DatasetSize


class Precedent(NamedTuple):
    """An experiment, its N, and the largest share of valid samples that its method `pairflow` reached."""

    length: int
    experiment: str
    valid: str


# The small network: docs/results.md, and a trial on a user's library. The transformer: the paper's tables.
_PRECEDENTS = {
    "mlp": (
        Precedent(16, "7,561 molecules of up to 7 heavy atoms, 2,000 iterations", "74 %"),
        Precedent(32, "127,190 molecules of QM9, up to 9 heavy atoms, 8,000 iterations", "29 %"),
        Precedent(74, "about 2,900 drug-like molecules, six minutes on two cores", "about 1 %"),
    ),
    "transformer": (
        Precedent(32, "127,190 molecules of QM9 in the paper, 50,000 iterations", "98 %"),
        Precedent(74, "224,568 molecules of ZINC-250k in the paper, 200,000 iterations", "89 %"),
    ),
}
_NETWORKS = {"mlp": "a small network (mlp)", "transformer": "a transformer"}


def describe(experiment: Experiment, sizes: DatasetSize) -> str:
    """Sentences on the quality to expect, from what was measured of the same kind of network."""
    name, iterations = experiment.network.name, experiment.training.iterations
    precedents = _PRECEDENTS[name]
    similar = next((one for one in precedents if one.length >= sizes.length), precedents[-1])
    return (
        f"Quality: the experiment trains {_NETWORKS[name]} for {iterations:,} iterations on {sizes.rows:,} "
        f"molecules of up to {sizes.length} tokens. Of experiments with such a network, the most similar one "
        f"that was measured made {similar.valid} valid samples ({similar.experiment}; N = {similar.length})."
    )
