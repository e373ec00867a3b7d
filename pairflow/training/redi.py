"""ReDi, rectified discrete flow (Yoo et al. 2025): pairs that a teacher makes, and training on them."""

from collections.abc import Callable

import torch
from torch import nn

from pairflow import rng
from pairflow.config import Redi, TeachSettings
from pairflow.training.objectives import FlowObjective


def draw_pairs(
    network: nn.Module,
    corruption,
    settings: TeachSettings,
    first: int,
    rows: int,
    *,
    length,
    prediction,
    device,
) -> torch.Tensor:
    """A batch of pairs (2, rows, N) on the CPU: uniform sources x0 and the teacher's samples x1 of them.

    `network` is the teacher, `prediction` the kind of denoiser that it is. A batch is a function of the seed,
    the method and its first row.
    """
    update = settings.model_dump(include={"sampler", "steps", "conversion"})
    seed = rng.stream_seed(settings.seed, "pairs", settings.method, first)
    generator = torch.Generator(device).manual_seed(seed)
    x0 = corruption.source((rows, length), generator, device)
    x1 = corruption.sample(network, x0, **update, prediction=prediction, generator=generator)
    return torch.stack([x0, x1]).cpu()


def objective(settings: Redi, *, x0, x1, corruption, loss, seed, device, cache=None) -> Callable:
    """The base's own loss on the teacher's pairs x0, x1 (M, N)."""
    return FlowObjective(x1, x0, corruption, settings.batch_size, loss, seed, device)
