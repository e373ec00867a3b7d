"""What each job takes: seconds, memory and disk, from the rates of the long work.

The short work goes by what it took where this was written (AMD EPYC, 2 cores, torch 2.15, 2026-11-21).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from pairflow.config import Experiment, parse_method
from pairflow.estimate import rates
from pairflow.estimate.rates import Rate, Work
from pairflow.estimate.sizes import Sizes
from pairflow.plan.jobs import Job

_START = {"torch": 3.0, "rdkit": 1.0}  # seconds until a step begins, by the slowest import
_MEMORY = {"torch": 700.0, "rdkit": 450.0}  # MiB of a step that holds little else
_MOLECULE_READ = 6e-5  # seconds a raw row: QM9's 133,885 took 8 s
_MOLECULE_DESCRIBED = (
    3e-4  # seconds a training molecule: the 7,561 of `demo` took 2.2 s, two processes' start aside
)
_SAMPLE_COUNTED = 1.6e-4  # seconds a sample of `demo`, half of them valid: 0.8 s for 5,120, and
_SAMPLE_COMPARED = 1.5e-8  # a sample and a training molecule
_IMAGE_COMPARED = 2e-11  # seconds a pixel, a sample and a training image
_IMAGE_FEATURES = 7e-4  # seconds an image, of the classifier
_CLASSIFIER_ROW = 7e-6  # seconds a pixel that the classifier is trained on
_REPORT = 4.0


@dataclass(frozen=True)
class Cost:
    """What a job takes; None what nobody knows.

    `seconds` are wall time with `threads` cores to itself, or a GPU; `memory_mb` is the process's on a CPU
    and the GPU's on a GPU; `disk` are bytes that stay.
    """

    seconds: float | None
    memory_mb: float | None
    disk: float | None
    threads: int = 1
    gpu: bool = False


class Costs:
    """The costs of an experiment's jobs on `cores` cores; with `gpu` the steps that can use one do."""

    def __init__(
        self, experiment: Experiment, sizes: Sizes, found: Mapping[Work, Rate], cores: int, gpu: bool
    ):
        self.experiment, self.sizes, self.rates, self.cores, self.gpu = experiment, sizes, found, cores, gpu
        self.device = "cuda" if gpu else "cpu"
        self.token = log2(max(2, sizes.vocabulary_size)) / 8  # bytes of a token that nothing packs better

    def of(self, job: Job) -> Cost:
        seconds, memory, disk = getattr(self, f"_{job.rule}", self._short)(job)
        on_gpu = self.gpu and job.uses_gpu(self.experiment.modality)
        return Cost(seconds, memory, disk, job.threads(self.cores), on_gpu)

    def _train(self, job: Job):
        return self._trained(job, rates.base_work, self.experiment.training)

    def _distill(self, job: Job):
        last = parse_method(job.method).distillations[-1]
        return self._trained(job, rates.distillation_work, getattr(self.experiment.distillation, last))

    def _trained(self, job: Job, work, settings):
        rate = self._rate(work, job)
        if rate is None:
            return None, None, None
        draw = self._rate(rates.draw_work, job)
        validations = settings.iterations // settings.validate_every + 1
        call = (draw.call or draw.seconds) if draw else 0.0
        seconds = settings.iterations * rate.seconds + validations * self.sizes.validation_rows * call
        # raw and averaged weights in float32, and 8 bytes for each molecule that is known
        known = 8 * self.sizes.rows if self.experiment.modality == "molecules" else 0
        disk = None if rate.parameters is None else 8 * rate.parameters + known
        return _START["torch"] + seconds, rate.memory_mb, disk

    def _teach(self, job: Job):
        pairs = self.experiment.distillation.redi.pairs
        return self._drawn(job, pairs.count, pairs.steps, True, 2)

    def _sample(self, job: Job):
        settings = job.settings
        return self._drawn(job, settings.samples * settings.trials, settings.nfe, settings.greedy_tail, 1)

    def _correlate(self, job: Job):
        settings = job.settings
        return self._drawn(job, settings.sources * settings.samples, settings.steps, True, 0)

    def _drawn(self, job: Job, rows: int, steps: int, greedy_tail: bool, files: int):
        """Of rows that take so many steps. Absorbing noise asks the network for what has changed alone."""
        disk = files * rows * self.sizes.length * self.token
        rate = self._rate(rates.draw_work, job)
        if rate is None:
            return None, None, disk
        calls = float(steps)
        if parse_method(job.method).corruption == "absorbing" and rate.call is not None:
            calls = steps * (1 - (1 - 1 / steps) ** self.sizes.length)
        update = rate.seconds - (rate.call or 0.0)
        seconds = steps * update + (calls + greedy_tail) * (rate.call or 0.0)
        if rate.call is None:
            seconds = (steps + greedy_tail) * rate.seconds
        return _START["torch"] + rows * seconds, rate.memory_mb, disk

    def _pair(self, job: Job):
        disk = 2 * self.sizes.rows * self.sizes.length * self.token
        if not job.settings.steps:
            return 1.0, 200.0, disk
        rate = self._rate(rates.pair_work, job)
        if rate is None:
            return None, None, disk
        return (
            1.0 + rate.seconds / (1 if self.gpu else job.threads(self.cores) * job.shards),
            rate.memory_mb,
            disk,
        )

    _pair_shard = _pair

    def _cover(self, job: Job):
        """Like a pairing: as many trajectories, among the same keys."""
        rate = self._rate(
            lambda *given: rates.pair_work(given[0], given[1], "pairflow", given[3]), job, "cpu"
        )
        if rate is None:
            return None, None, 1e4
        return 1.0 + rate.seconds / job.threads(self.cores), rate.memory_mb, 1e4

    def _preprocess(self, job: Job):
        rows = self.sizes.rows + self.sizes.validation_rows
        if self.experiment.modality == "images":
            pixels = rows * self.sizes.length
            return 1.0 + 5e-8 * pixels, 150.0 + 10e-6 * pixels, pixels * self.token
        return (
            _START["rdkit"] + rows * _MOLECULE_READ,
            200.0 + 1.4e-3 * rows,
            rows * (self.sizes.length / 4 + 12),
        )

    def _describe_molecules(self, job: Job):
        rows, threads = self.sizes.rows, job.threads(self.cores)
        described = min(rows, 20_000)
        return 2.0 + (rows + described) * _MOLECULE_DESCRIBED / threads, _MEMORY["rdkit"], rows * 60.0

    def _evaluate(self, job: Job):
        settings, sizes = job.settings, self.sizes
        samples = settings.samples * settings.trials
        if self.experiment.modality == "molecules":
            each = _SAMPLE_COUNTED + sizes.rows * _SAMPLE_COMPARED
            return _START["rdkit"] + samples * each, _MEMORY["rdkit"] + 3e-4 * sizes.rows, 3e4
        if self.experiment.extractor_settings().extractor != "classifier":
            return None, None, 2e4
        compared = sizes.rows * sizes.length * _IMAGE_COMPARED
        memory = _MEMORY["torch"] + 12e-6 * sizes.rows * sizes.length
        return _START["torch"] + samples * (compared + _IMAGE_FEATURES), memory, 2e4

    def _floor(self, job: Job):
        return self._features(job.settings.samples * job.settings.trials)

    def _reference(self, job: Job):
        return self._features(self.sizes.rows)

    def _features(self, images: int):
        if self.experiment.extractor_settings().extractor != "classifier":
            return None, None, 1e6
        memory = _MEMORY["torch"] + 12e-6 * self.sizes.rows * self.sizes.length
        return _START["torch"] + images * _IMAGE_FEATURES, memory, 1e6

    def _classify(self, job: Job):
        pixels = 128 * job.settings.iterations * self.sizes.length
        return _START["torch"] + pixels * _CLASSIFIER_ROW / 10, 900.0, 1e6

    def _report(self, job: Job):
        return _REPORT, 500.0, 1e6

    def _short(self, job: Job):
        """Of diagnose, gather and the like."""
        return 2.0, 300.0, 1e4

    def _rate(self, work, job: Job, device: str | None = None) -> Rate | None:
        return self.rates.get(work(self.experiment, self.sizes, job.method, device or self.device))
