"""Computes rates and memory by arithmetic where nothing was measured: from the sizes of network and data."""

from collections.abc import Iterable

from pairflow.config import FLOWS, Experiment, suggest
from pairflow.data.source import DatasetSize
from pairflow.estimate.rates import Rate, Work, packaged

CORE = 6e10  # operations a second: small and large networks had 5.8e10 to 7.9e10 on a core (AMD EPYC)
GPU = "an RTX A6000"
_ON_CPU = "arithmetic for a core of an AMD EPYC"
_ON_GPU = f"arithmetic for {GPU}, at the speed that the paper's table of cost has"
_CALL = 0.01  # seconds that a GPU takes to start the kernels of a small network
_IMPORTS = 700.0  # MiB of a process that has imported torch
# Numbers that a training keeps for each number that a linear map puts out (counted from the tensors that
# autograd saves, 2026-11-28), and float32 numbers of each logit in a pass without gradients.
_KEPT, _DRAWN = 2.8, 4
_MOST_ROWS, _MOST_BYTES = 1024, 2**29  # of a batch of samples, as in `flow.corruption` and `training.model`


def expected_rates(works: Iterable[Work], experiment: Experiment, sizes: DatasetSize) -> dict[Work, Rate]:
    """Return the recorded rates of these works, or else those by arithmetic, as far as they are known."""
    rates = {work: packaged().get(work) or assume(work, experiment, sizes) for work in works}
    return {work: rate for work, rate in rates.items() if rate}


def assume(work: Work, experiment: Experiment, sizes: DatasetSize) -> Rate | None:
    """Compute the rate of a work; None if its time cannot be computed."""
    if work.kind == "pair":
        return _pairing(work)
    maps = experiment.network.maps(work.length, work.vocabulary_size, sizes.shape)
    if work.kind == "lead" or not maps:
        return None
    on_gpu = work.device == "cuda"
    parameters = sum(one.inputs * one.outputs * one.number for one in maps)
    operations = 2 * sum(one.inputs * one.outputs * one.number * one.times for one in maps)
    outputs = sum(one.outputs * one.number * one.times for one in maps)
    logits = work.length * (work.vocabulary_size or 1)
    speed = experiment.network.operations_on_gpu if on_gpu else CORE
    rows = min(_MOST_ROWS, max(1, _MOST_BYTES // (8 * logits)))
    numbers = rows * (experiment.network.at_once * outputs + _DRAWN * logits)
    calls, memory = rows, 8.0 * parameters
    if work.kind == "train":
        operations *= 3 * work.batch  # the way back takes twice as long
        # A validation takes as many rows as a batch of samples has.
        kept = work.batch * (_KEPT * outputs + experiment.network.logits_kept * logits)
        # The weights, their gradients, two moments and the moving average.
        calls, numbers, memory = 1, max(numbers, kept), 20.0 * parameters
    mb = (memory + 4 * numbers) / 2**20 + (0.0 if on_gpu else _IMPORTS)
    if not on_gpu and (seconds := _suggested(work, experiment)):
        return Rate(seconds, mb, "what `pairflow new` assumes (AMD EPYC, 2026-11-23)", parameters)
    seconds = operations / speed + (_CALL / calls if on_gpu else 0.0)
    return Rate(seconds, mb, _ON_GPU if on_gpu else _ON_CPU, parameters)


def _suggested(work: Work, experiment: Experiment) -> float | None:
    """Return the seconds that `pairflow new` assumes for a network that it suggests; None for any other."""
    settings = experiment.network.model_dump()
    for network in (suggest.SMALL, suggest.TRANSFORMER):
        if settings | network == settings:
            seconds = suggest.iteration_seconds(work.length, work.vocabulary_size, network, work.batch or 1)
            # Drawing takes half of an iteration, for it computes no gradients.
            return (
                seconds
                if work.kind == "train"
                else seconds * 0.5 / (suggest.BATCH if network is suggest.SMALL else 1)
            )
    return None


def _pairing(work: Work) -> Rate:
    """Compute the rate of pairing, within a factor of three of the records in benchmarks/records/speed.md."""
    compared = float(work.rows) ** 2 * work.steps
    if not FLOWS[work.flow].tokens:
        memory = 1200.0 + 1.2e-5 * work.rows * work.length
        return Rate(
            compared * (2e-9 + 2.5e-11 * work.length), memory, "docs/continuous.md (AMD EPYC, 2026-11-22)"
        )
    if work.device == "cuda":  # of the authors' program
        return Rate(1.0 + 4e-12 * compared * work.length, None, _ON_GPU)
    memory = 300.0 + 1.2e-5 * work.rows * work.length
    return Rate(3e-5 * work.rows + 1.2e-12 * compared * work.length, memory, _ON_CPU)
