"""Discrete Consistency Distillation (DCD of Duo, Sahoo et al. 2025): match a teacher that sees less noise."""

import copy
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pairflow.config import Dcd
from pairflow.errors import InputError
from pairflow.flow.corruption import Corruption, Network, stratified_times
from pairflow.flow.duality import SharedNoise, Transformation, shared_noise
from pairflow.runtime.distributed import unwrap
from pairflow.training.fit import TrainingRows, labels_of
from pairflow.training.model import DiscreteModel
from pairflow.training.objectives import Batches, BatchLoss, Labels, Objective, random_generator

DOUBLINGS = 6  # so often the step in noise time doubles, from 1/64 to 1

CPU = torch.device("cpu")


def objective(settings: Dcd, model: DiscreteModel, rows: TrainingRows) -> "Consistency":
    """Return the objective of DCD on the data x1 (M, N).

    It needs no sources x0, and its loss replaces that of the base method. Raises InputError if the noise is
    not uniform.
    """
    if model.frequencies is not None:
        raise InputError("+dcd: needs uniform noise, the noise of its duality with Gaussian noise")
    table = Transformation.compute(model.corruption.symbols)
    labels = labels_of(rows, model)
    return Consistency(settings, rows.x1, model.corruption, table, model.seed, model.device, labels)


class Consistency(Objective):
    """The loss of DCD: the mean KL(student || teacher) per token, in nats (Sahoo et al. 2025).

    The teacher is a frozen copy of the student, renewed every `teacher_every` iterations, so iterations must
    run in order. Both get the same labels and the same Gaussian noise, the student at a higher level. Noise
    time is 0 at the level noise_min and 1 at noise_max.

    Args:
        settings: the settings of DCD.
        x1: data tokens (M, N).
        corruption: the noise of the model.
        transformation: the table from levels of Gaussian noise to alpha, the share of data kept.
        seed: every random number follows from it and the iteration.
        device: where the batches are.
        labels: the labels of x1, for a conditional model.
    """

    def __init__(
        self,
        settings: Dcd,
        x1: np.ndarray,
        corruption: Corruption,
        transformation: Transformation,
        seed: int,
        device: torch.device,
        labels: Labels | None = None,
    ):
        self.settings, self.corruption, self.transformation = settings, corruption, transformation
        self.seed, self.device, self.labels = seed, device, labels
        self.x1 = torch.tensor(x1, device=device)  # (M, N), in 8 or 16 bits to save memory
        self.batches = Batches(len(self.x1), settings.batch_size, seed, device)
        self.teacher: nn.Module | None = None

    def batch(self, network: nn.Module, iteration: int) -> BatchLoss:
        teacher = self.teacher
        if teacher is None or iteration % self.settings.teacher_every == 0:
            teacher = self._renew(unwrap(network))
        batch = self.batches(iteration)
        x1 = self.x1[batch].long()  # (B, N)
        generator = random_generator(self.device, self.seed, "dcd", iteration)
        noise = shared_noise(x1, self.corruption.symbols, generator)
        less, more = self.noise_times(iteration)
        labels = None if self.labels is None else self.labels.after_dropout(batch, iteration)

        def loss(network: nn.Module, rows: slice) -> Tensor:
            label = {} if labels is None else {"label": labels[rows]}
            shared = noise.select(rows)
            student = self._predict(partial(network, **label), x1[rows], shared, more[rows])  # (rows, N, K)
            with torch.no_grad():
                target = self._predict(partial(teacher, **label), x1[rows], shared, less[rows])
            return divergence(student, target).mean()

        return loss

    def tensors(self) -> dict[str, Tensor]:
        """Return the teacher's weights, to save in a snapshot."""
        return self.teacher.state_dict() if self.teacher else {}

    def restore(self, tensors: dict[str, Tensor], network: nn.Module) -> None:
        """Restore the teacher of a snapshot; it has the architecture of `network`."""
        self._renew(network).load_state_dict(tensors)

    def noise_times(self, iteration: int) -> tuple[Tensor, Tensor]:
        """Return the noise times of teacher and student in an iteration, each (B,) float64 on the CPU.

        The student's times are stratified over the batch, plus one step (`step_size` of the iteration), at
        most 1. The teacher's are one step less.
        """
        # The times are on the CPU, because `_predict` hands them to SciPy's interpolator.
        generator = random_generator(CPU, self.seed, "dcd times", iteration)
        step = step_size(iteration, self.settings.teacher_every)
        t = 1 - stratified_times(self.settings.batch_size, generator).double()  # noise times, in [1e-3, 1]
        t = (t + step).clamp(max=1.0)
        return t - step, t

    def _renew(self, network: nn.Module) -> nn.Module:
        self.teacher = copy.deepcopy(network).eval().requires_grad_(False)
        return self.teacher

    def _predict(self, network: Network, x1: Tensor, shared: SharedNoise, times: Tensor) -> Tensor:
        """Return the network's log-probabilities (B, N, K) of x1 (B, N) at noise `times` (B,).

        Its input is x1 with the `shared` Gaussian noise, at levels between noise_min (time 0) and noise_max
        (time 1).
        """
        lowest, highest = self.settings.noise_min, self.settings.noise_max
        gamma = lowest + times * (highest - lowest)  # (B,)
        alpha = torch.from_numpy(self.transformation(gamma.numpy())).float()
        state = shared.state(x1, gamma.to(self.device))  # (B, N)
        return self.corruption.log_probabilities(network, state, alpha.to(self.device))


def step_size(iteration: int, teacher_every: int) -> float:
    """Return the step in noise time: 1/64, doubled whenever the teacher is renewed, up to 1."""
    return 2.0 ** min(iteration // teacher_every - DOUBLINGS, 0)


def divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """Return KL(student || teacher), (B, N) in nats, of log-probabilities (B, N, K)."""
    # PyTorch's kl_div(q, p) is KL(p || q).
    return F.kl_div(teacher, student, reduction="none", log_target=True).sum(-1)
