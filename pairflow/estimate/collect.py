"""The rates of an experiment's work: of its finished jobs, else measured now, else recorded elsewhere."""

import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pairflow.artifacts import machine
from pairflow.config import FLOWS, Experiment, suggest
from pairflow.data.source import DatasetSize
from pairflow.estimate.measure import measure
from pairflow.estimate.rates import Rate, Work, packaged, rates_of
from pairflow.plan import paths
from pairflow.plan.job import Job
from pairflow.runtime.progress import bar


def collect(
    works: list[Work],
    finished: Iterable[Job],
    root: Path,
    experiment: Experiment,
    sizes: DatasetSize,
    recorded: bool,
    progress: bool,
) -> dict[Work, Rate]:
    """The rates of `works`, without those that nobody knows; with `recorded` nothing is measured."""
    rates = rates_of(finished, experiment, sizes, "finished jobs of this machine", machine())
    devices = {"cpu"} | ({"cuda"} if shutil.which("nvidia-smi") else set())
    absent = [] if recorded else [work for work in works if work not in rates and work.device in devices]
    # The blocks of a continuous pairing take too long to try one.
    absent = [work for work in absent if work.kind != "pair" or FLOWS[work.flow].tokens]
    tokens = paths.data(root, "train.parquet")
    rows = tokens if tokens.is_file() else None
    quiet = not (progress and absent)
    origin = f"measured here on {datetime.now(UTC):%Y-%m-%d}"
    for work in bar(absent, total=len(absent), desc="measure", unit="rate", quiet=quiet):
        if rate := measure(work, experiment.training.loss, sizes.shape, rows, origin):
            rates[work] = rate
    found = {work: rates.get(work) or packaged().get(work) or _computed(work, experiment) for work in works}
    return {work: rate for work, rate in found.items() if rate}


def _computed(work: Work, experiment: Experiment) -> Rate | None:
    """The rate by a formula: of a continuous pairing, and of the networks that `new` suggests for a CPU."""
    if work.device != "cpu":
        return None
    if work.kind == "pair":
        if FLOWS[work.flow].tokens:
            return None
        seconds = work.rows**2 * work.steps * (2e-9 + 2.5e-11 * work.length)
        memory = 1200.0 + 1.2e-5 * work.rows * work.length
        return Rate(seconds, memory, "docs/continuous.md (AMD EPYC, 2026-11-22)")
    for network in (suggest.SMALL, suggest.TRANSFORMER):
        if experiment.network.model_dump() | network == experiment.network.model_dump():
            seconds = suggest.iteration_seconds(work.length, work.vocabulary_size, network, work.batch or 1)
            if work.kind == "draw":  # without gradients
                seconds *= 0.5 / (suggest.BATCH if network is suggest.SMALL else 1)
            return Rate(seconds, 900.0, "what `pairflow new` assumes (AMD EPYC, 2026-11-23)")
    return None
