"""What quality to expect of an experiment on a user's molecules: that of the most similar one measured."""

import math
from typing import NamedTuple

from pairflow.config import Experiment, suggest
from pairflow.data.source import DatasetSize
from pairflow.kinds.molecules.settings import Molecules


class Precedent(NamedTuple):
    """An experiment that was measured: N, training rows, iterations, and the share of the samples of its
    method `pairflow` that were valid molecules, or useful ones, as docs/metrics.md has them.
    """

    length: int
    rows: int
    iterations: int
    share: str
    data: str
    what: str = "valid"


# The small network: docs/results.md, at its best number of steps. The small transformer: the records of
# benchmarks/useful_molecules.py and fine_tune.py, likewise. The large one: the paper's tables.
_ZINC = "molecules of ZINC-250k as SELFIES, at temperature 0.7"
_INDOLES = "indoles of ZINC-250k, from the model zinc250k, at temperature 0.7"
_FEW = 1000  # training rows; with fewer a start from a model of others was measured
_FROM_SCRATCH = "1 %"  # of the samples were useful without that start, after as many iterations
_PRECEDENTS: dict[str, tuple[Precedent, ...]] = {
    "mlp": (
        Precedent(16, 7561, 2000, "72 %", "molecules of up to 7 heavy atoms"),
        Precedent(32, 127_190, 8000, "29 %", "molecules of QM9"),
        Precedent(72, 2759, 900, "0.8 %", "molecules of ZINC-250k"),
    ),
    "small transformer": (
        Precedent(72, 2849, 4923, "24 %", _ZINC, "useful"),
        Precedent(72, 2849, 16_707, "31 %", _ZINC, "useful"),
        Precedent(72, 2849, 33_834, "40 %", _ZINC, "useful"),
        Precedent(72, 47_499, 32_656, "41 %", _ZINC, "useful"),
    ),
    "fine-tuned transformer": (Precedent(72, 450, 1000, "25 %", _INDOLES, "useful"),),
    "transformer": (
        Precedent(32, 127_190, 50_000, "98 %", "molecules of QM9"),
        Precedent(74, 224_568, 200_000, "89 %", "molecules of ZINC-250k"),
    ),
}
_NETWORKS = {
    "mlp": "a small network (mlp)",
    "small transformer": "a small transformer",
    "fine-tuned transformer": "a small transformer, from the weights of another,",
    "transformer": "the paper's transformer",
}


def describe(experiment: Experiment, sizes: DatasetSize) -> str:
    """Sentences on the quality to expect, from what was measured with the same kind of network."""
    name, iterations = _kind(experiment), experiment.training.iterations
    selfies = isinstance(experiment.data, Molecules) and experiment.data.representation == "selfies"
    precedent = "No experiment with such a network has been measured so far."
    if name in _PRECEDENTS:
        precedent = f"In the most similar experiment measured so far, {_result(name, iterations, sizes)}."
    sentences = [
        f"Quality: this trains {_NETWORKS.get(name, name)} for {iterations:,} iterations on {sizes.rows:,} "
        f"molecules of up to {sizes.length} tokens.",
        precedent,
    ]
    if selfies:
        sentences.append(
            "As SELFIES nearly all samples are valid molecules, which does not make them useful."
        )
    [tuned] = _PRECEDENTS["fine-tuned transformer"]
    few = sizes.rows < _FEW and sizes.length <= tuned.length
    if name == "small transformer" and selfies and few:
        sentences.append(
            "With few molecules consider `--from zinc250k`, to start from a model of many others: "
            f"after {tuned.iterations:,} iterations on {tuned.rows} molecules {tuned.share} of the samples "
            f"were useful, and {_FROM_SCRATCH} without it."
        )
    if name == "mlp" and sizes.length > _PRECEDENTS["mlp"][0].length:
        sentences.append(
            "For a useful model, run `new` where there is a GPU: it then suggests the paper's transformer, "
            f"with which {_result('transformer', iterations, sizes)}. What a smaller library gives has not "
            "been measured: expect fewer valid molecules, and more copies of yours."
        )
    return " ".join(sentences)


def _kind(experiment: Experiment) -> str:
    """The kind of network, as `_PRECEDENTS` calls it."""
    network = experiment.network
    if network.name != "transformer" or network.width >= suggest.WIDE:
        return network.name
    return "fine-tuned transformer" if experiment.parent else "small transformer"


def _result(network: str, iterations: int, sizes: DatasetSize) -> str:
    """What a precedent gave: of those with the shortest rows of at least N tokens, or else the longest rows,
    the one with about as many rows and iterations.
    """
    precedents = _PRECEDENTS[network]
    length = min(
        (one.length for one in precedents if one.length >= sizes.length), default=precedents[-1].length
    )

    def distance(one: Precedent) -> float:
        return abs(math.log(one.rows / sizes.rows)) + abs(math.log(one.iterations / iterations))

    one = min((one for one in precedents if one.length == length), key=distance)
    return (
        f"{one.share} of the samples were {one.what} ({one.rows:,} {one.data}, "
        f"{one.iterations:,} iterations, N = {one.length})"
    )
