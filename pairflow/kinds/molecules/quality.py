"""Says what quality to expect of an experiment on molecules, by measurements with such a network."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.config import Experiment, suggest
from pairflow.data.source import DatasetSize
from pairflow.kinds.molecules.settings import Molecules

# Measured results, from which the quality to expect is read; the file's head explains its columns.
PRECEDENTS = pd.read_csv(Path(__file__).with_name("precedents.csv"), comment="#")
_MUCH_LESS = 0.6  # of what the nearest precedent has
_NETWORKS = {
    "mlp": "a small network (mlp)",
    "small transformer": "a small transformer",
    "transformer of groups": "a small transformer",
    "fine-tuned transformer": "a small transformer, from the weights of another,",
    "fine-tuned transformer of groups": "a small transformer, from the weights of another,",
    "transformer": "the paper's transformer",
}


def describe_quality(experiment: Experiment, sizes: DatasetSize) -> str:
    """Return sentences on the quality to expect, from measurements with the same kind of network."""
    iterations, name = experiment.training.iterations, _network_name(experiment)
    known = name in set(PRECEDENTS.network)
    sentences = [
        f"Quality: this trains {_NETWORKS.get(name, name)} for {iterations:,} iterations on {sizes.rows:,} "
        f"molecules of up to {sizes.length} tokens.",
        *(_expect(name, iterations, sizes) if known else ["No such experiment has been measured so far."]),
    ]
    selfies = isinstance(experiment.data, Molecules) and experiment.data.representation == "selfies"
    if selfies:
        sentences.append(
            "As SELFIES nearly all samples are valid molecules, which does not make them useful."
        )
    if name == "mlp" and sizes.length > PRECEDENTS.set_index("network").length["mlp"].iloc[0]:
        result = _result(_find_precedent("transformer", iterations, sizes))
        sentences.append(
            "For a useful model, run `new` where there is a GPU: it then suggests the paper's transformer, "
            f"with which {result}. What a smaller library gives has not been measured: expect fewer valid "
            "molecules, and more copies of yours."
        )
    return " ".join(sentences)


def _network_name(experiment: Experiment) -> str:
    """The name of the experiment's network in PRECEDENTS."""
    network = experiment.network
    if network.name != "transformer" or network.width >= suggest.WIDE:
        return network.name
    grouped = isinstance(experiment.data, Molecules) and experiment.data.representation == "groups"
    if experiment.parent:
        return "fine-tuned transformer" + " of groups" * grouped
    return "transformer of groups" if grouped else "small transformer"


def _expect(name: str, iterations: int, sizes: DatasetSize) -> Iterator[str]:
    """Yield the result of the most similar precedent, and what this experiment has much less of."""
    one = _find_precedent(name, iterations, sizes)
    yield f"In the most similar experiment measured so far, {_result(one)}."
    ours = {"iterations": (iterations, one.iterations), "molecules": (sizes.rows, one.rows)}
    fewer = [what for what, (here, there) in ours.items() if here < _MUCH_LESS * there]
    if fewer:
        yield f"This has far fewer {' and '.join(fewer)}, so expect less."


def _find_precedent(network: str, iterations: int, sizes: DatasetSize) -> pd.Series:
    """Find the most similar precedent of that network. Of the precedents with rows of at least N tokens those
    with the shortest are considered (else the longest), and of these the one with the nearest numbers of rows
    and iterations is chosen."""
    known = PRECEDENTS[PRECEDENTS.network == network]
    length = min(known.length[known.length >= sizes.length], default=known.length.iloc[-1])
    known = known[known.length == length]
    distance = np.log(known.rows / sizes.rows).abs() + np.log(known.iterations / iterations).abs()
    return known.loc[distance.idxmin()]


def _result(one: pd.Series) -> str:
    """Say the result of a precedent in words."""
    scratch = f", and {one.scratch} from scratch" if isinstance(one.scratch, str) else ""
    return (
        f"{one.share} of the samples were {one.what} ({one.rows:,} {one.molecules}, "
        f"{one.iterations:,} iterations, N = {one.length}){scratch}"
    )
