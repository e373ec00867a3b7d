"""Rates: seconds of a CPU core or a GPU, and memory, of a unit of work; measured, recorded or computed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pairflow.artifacts import read_provenance
from pairflow.config import FLOWS, Experiment, suggest
from pairflow.data.source import DatasetSize
from pairflow.plan.job import Job
from pairflow.plan.work import Work, tasks_of

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


@dataclass(frozen=True)
class Rate:
    """Seconds for one unit of a `Work`, its memory in MiB, where both numbers come from (`origin`), and the
    network's number of parameters."""

    seconds: float
    memory_mb: float | None
    origin: str
    parameters: int | None = None


def rates_of(
    finished: Iterable[Job], experiment: Experiment, sizes: DatasetSize, origin: str, machine: str = ""
) -> dict[Work, Rate]:
    """Compute {work: rate} from the recorded seconds of finished jobs that do one kind of long work.

    `origin` says in words where the rates come from. If `machine` is given, only jobs that ran on it count.
    """
    parts: dict[Work, list[tuple[float, float, float, int]]] = {}
    for job in finished:
        record = read_provenance(job.record)
        device = "cuda" if str(record.get("device")).startswith("cuda") else "cpu"
        seconds, tasks = record.get("device_seconds"), tasks_of(job, experiment, sizes, device)
        if seconds is not None and len(tasks) == 1 and machine in ("", record.get("machine")):
            [(work, units)], threads = tasks, record.get("threads") or 1
            seconds *= speedup(threads) / threads  # of one thread, which wastes less
            model = job.outputs.get("model")  # raw and averaged weights in float32
            parameters = model.stat().st_size // 8 if model and model.is_file() else 0
            part = seconds, units, record.get("peak_memory_mb", 0.0), parameters
            parts.setdefault(work, []).append(part)
    rates = {}
    for work, group in parts.items():
        times, counts, memory, sizes_of_networks = zip(*group, strict=True)
        rates[work] = Rate(sum(times) / sum(counts), max(memory), origin, max(sizes_of_networks) or None)
    return rates


def speedup(threads: int) -> float:
    """Return how many times as fast several threads are as one; for two, 1.3 to 1.7 was measured."""
    return 1 + 0.4 * (threads - 1)


@cache
def packaged() -> dict[Work, Rate]:
    """Read the rates that come with pairflow, recorded on other machines."""
    facts = json.loads(Path(__file__).with_name("recorded.json").read_text())
    return {Work(**entry["work"]): Rate(**entry["rate"]) for entry in facts}


def expected_rates(works: Iterable[Work], experiment: Experiment, sizes: DatasetSize) -> dict[Work, Rate]:
    """Return a rate for each of these works: the recorded one that comes with pairflow, or else an estimate
    by arithmetic. Works for which neither is known are left out."""
    rates = {work: packaged().get(work) or _assume(work, experiment, sizes) for work in works}
    return {work: rate for work, rate in rates.items() if rate}


def _assume(work: Work, experiment: Experiment, sizes: DatasetSize) -> Rate | None:
    """Compute the rate of a work by arithmetic from the sizes of its network or pairing; None if that is
    impossible."""
    if work.kind == "pair":
        return _pairing(work)
    network = experiment.network
    maps = network.maps(work.length, work.vocabulary_size, sizes.shape)
    if work.kind == "lead" or not maps:
        return None
    on_gpu, batch = work.device == "cuda", work.batch
    parameters = sum(one.inputs * one.outputs * one.number for one in maps)
    operations = 2 * sum(one.inputs * one.outputs * one.number * one.times for one in maps)
    outputs = sum(one.outputs * one.number * one.times for one in maps)
    logits = work.length * (work.vocabulary_size or 1)
    rows = min(_MOST_ROWS, max(1, _MOST_BYTES // (8 * logits)))
    numbers = rows * (network.at_once * outputs + _DRAWN * logits)
    calls, memory = rows, 8.0 * parameters
    if work.kind == "train":
        operations *= 3 * batch  # the way back takes twice as long
        # A validation takes as many rows as a batch of samples has. Beside the weights are their gradients,
        # two moments and a moving average.
        numbers = max(numbers, batch * (_KEPT * outputs + network.logits_kept * logits))
        calls, memory = 1, 20.0 * parameters
    mb = (memory + 4 * numbers) / 2**20 + (0.0 if on_gpu else _IMPORTS)
    if on_gpu:
        return Rate(operations / network.operations_on_gpu + _CALL / calls, mb, _ON_GPU, parameters)
    settings = network.model_dump().items()
    for suggested, rows in ((suggest.SMALL, suggest.BATCH), (suggest.TRANSFORMER, 1)):
        if settings >= suggested.items():
            seconds = suggest.iteration_seconds(work.length, work.vocabulary_size, suggested, batch or 1)
            seconds *= 1 if work.kind == "train" else 0.5 / rows  # without gradients
            return Rate(seconds, mb, "what `pairflow new` assumes (AMD EPYC, 2026-11-23)", parameters)
    return Rate(operations / CORE, mb, _ON_CPU, parameters)


def _pairing(work: Work) -> Rate:
    """Compute the rate of pairing one subset by arithmetic.

    For token rows on a CPU it is within a factor of three of the records in benchmarks/records/speed.md. On
    a GPU it is the rate of the authors' program, and the memory is unknown.
    """
    compared, numbers = float(work.rows) ** 2 * work.steps, 1.2e-5 * work.rows * work.length
    if not FLOWS[work.flow].tokens:
        seconds = compared * (2e-9 + 2.5e-11 * work.length)
        return Rate(seconds, 1200.0 + numbers, "docs/continuous.md (AMD EPYC, 2026-11-22)")
    if work.noise != "uniform":  # every state is compared with every row
        return Rate(3e-5 * work.rows + 6.4e-11 * compared * work.length, 300.0 + numbers, _ON_CPU)
    if work.device == "cuda":  # of the authors' program
        return Rate(1.0 + 4e-12 * compared * work.length, None, _ON_GPU)
    return Rate(3e-5 * work.rows + 1.2e-12 * compared * work.length, 300.0 + numbers, _ON_CPU)
