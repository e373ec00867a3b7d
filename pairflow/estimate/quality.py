"""What quality to expect of an experiment on a user's molecules: that of the most similar one measured."""

from typing import NamedTuple

from pairflow.config import Experiment, suggest
from pairflow.data.source import DatasetSize


class Precedent(NamedTuple):
    """An experiment that was measured, its N, and the share of the samples of its method `pairflow`.

    `what` they were: valid molecules, or useful ones, as docs/metrics.md has them.
    """

    length: int
    experiment: str
    share: str
    what: str = "valid"


# The small network: docs/results.md, at its best number of steps. The small transformer: the records of
# benchmarks/useful_molecules.py, likewise. The large one: the paper's tables.
_PRECEDENTS: dict[str, tuple[Precedent, ...]] = {
    "mlp": (
        Precedent(16, "7,561 molecules of up to 7 heavy atoms, 2,000 iterations", "74 %"),
        Precedent(32, "127,190 molecules of QM9, 8,000 iterations", "29 %"),
        Precedent(72, "2,759 molecules of ZINC-250k, 900 iterations", "0.8 %"),
    ),
    "small transformer": (
        Precedent(
            72,
            "2,849 molecules of ZINC-250k as SELFIES, 5 minutes of two cores, at temperature 0.7",
            "23 %",
            "useful",
        ),
    ),
    "transformer": (
        Precedent(32, "127,190 molecules of QM9, 50,000 iterations", "98 %"),
        Precedent(74, "224,568 molecules of ZINC-250k, 200,000 iterations", "89 %"),
    ),
}
_NETWORKS = {
    "mlp": "a small network (mlp)",
    "small transformer": "a small transformer",
    "transformer": "the paper's transformer",
}


def describe(experiment: Experiment, sizes: DatasetSize) -> str:
    """Sentences on the quality to expect, from what was measured with the same kind of network."""
    network, iterations, length = experiment.network, experiment.training.iterations, sizes.length
    small = network.name == "transformer" and network.width < suggest.WIDE
    name = "small transformer" if small else network.name
    sentences = [
        f"Quality: this trains {_NETWORKS[name]} for {iterations:,} iterations on {sizes.rows:,} molecules "
        f"of up to {length} tokens.",
        f"In the most similar experiment measured so far, {_result(name, length)}.",
    ]
    if getattr(experiment.data, "representation", "smiles") == "selfies":
        sentences.append(
            "As SELFIES nearly all samples are valid molecules, which does not make them useful."
        )
    if name == "mlp" and length > _PRECEDENTS["mlp"][0].length:
        sentences.append(
            "For a useful model, run `new` where there is a GPU: it then suggests the paper's transformer, "
            f"with which {_result('transformer', length)}. What a smaller library gives has not been "
            "measured: expect fewer valid molecules, and more copies of yours."
        )
    return " ".join(sentences)


def _result(network: str, length: int) -> str:
    """What the shortest precedent with at least this N, or else the longest, gave."""
    precedents = _PRECEDENTS[network]
    similar = next((one for one in precedents if one.length >= length), precedents[-1])
    return f"{similar.share} of the samples were {similar.what} ({similar.experiment}, N = {similar.length})"
