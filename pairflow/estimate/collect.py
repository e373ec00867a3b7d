"""The rates of an experiment's work: timed in results/, else measured now, else recorded elsewhere."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pairflow.artifacts import digest, machine, read_metadata, read_table
from pairflow.config import Experiment, suggest
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.estimate.measure import measure
from pairflow.estimate.rates import Rate, Work, continuous_pairing, packaged, rates_from_timings
from pairflow.plan import paths
from pairflow.runtime.progress import bar

_DECISIVE = ("data", "network", "training", "distillation", "pairing", "evaluations")  # settings of a rate


def collect(
    works: list[Work], root: Path, experiment: Experiment, sizes: DatasetSize, recorded: bool, progress: bool
) -> dict[Work, Rate]:
    """The rates of `works`, without those that nobody knows; with `recorded` nothing is measured."""
    timed = _timed_here(root, experiment, sizes)
    rates = {work: timed.get(work) for work in works}
    origin = f"measured here on {datetime.now(UTC):%Y-%m-%d}"
    rates |= {work: rates[work] or continuous_pairing(work) for work in works}
    absent = [work for work in works if not rates[work] and not recorded and _can_measure(work)]
    tokens = paths.data(root, "train.parquet")
    rows = tokens if tokens.is_file() else None
    twins = {work: _as_slow(work) for work in absent}
    asked = dict.fromkeys(twins.values())
    quiet = not (progress and asked)
    measured = {
        work: measure(work, experiment.training.loss, sizes.shape, rows, origin)
        for work in bar(asked, total=len(asked), desc="measure", unit="rate", quiet=quiet)
    }
    rates |= {work: measured[twin] for work, twin in twins.items()}
    for work, rate in rates.items():
        rates[work] = rate or packaged().get(work) or _suggested(work, experiment)
    return {work: rate for work, rate in rates.items() if rate}


def _as_slow(work: Work) -> Work:
    """Work that takes as long: a training with masks takes the time of one with uniform noise."""
    masked = (work.kind, work.corruption) == ("train", "absorbing")
    return replace(work, corruption="uniform") if masked else work


def _can_measure(work: Work) -> bool:
    """Whether the device is here; the blocks of a continuous pairing take too long to try one."""
    if work.kind == "pair" and not work.tokens:
        return False
    return work.device == "cpu" or shutil.which("nvidia-smi") is not None


def _timed_here(root: Path, experiment: Experiment, sizes: DatasetSize) -> dict[Work, Rate]:
    """The rates of this experiment's own results, if this machine made them."""
    metrics, path = root / "metrics.parquet", root / "timings.parquet"
    try:
        parameters = read_metadata(metrics).parameters
        timings, metadata = read_table(path, "timings")
    except InputError:
        return {}
    settings = experiment.model_dump(mode="json")
    changed = any(parameters.get(key) != settings[key] for key in _DECISIVE)
    if changed or metadata.inputs.get("metrics") != digest(metrics):
        return {}
    frame, origin = timings.to_pandas(), f"results/{root.name}/timings.parquet, of this machine"
    return rates_from_timings(frame[frame["machine"] == machine()], experiment, sizes, origin)


def _suggested(work: Work, experiment: Experiment) -> Rate | None:
    """The rate that `pairflow new` assumes, for the networks that it suggests for a CPU."""
    suggested = (suggest.SMALL, suggest.TRANSFORMER)
    network = next((known for known in suggested if known["name"] == experiment.network.name), None)
    if work.device != "cpu" or not network or experiment.network != type(experiment.network)(**network):
        return None
    seconds = suggest.iteration_seconds(work.length, work.vocabulary_size, network, work.batch or 1)
    small = network is suggest.SMALL
    if work.kind == "draw" and not small:
        seconds *= 0.5  # without gradients
    elif work.kind != "train" or (small and work.batch != suggest.BATCH):
        return None
    return Rate(seconds, 900.0, "what `pairflow new` assumes (AMD EPYC, 2026-11-23)")
