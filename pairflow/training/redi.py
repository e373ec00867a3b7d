"""ReDi, rectified discrete flow (Yoo et al. 2025): pairs that a teacher makes, and training on them."""

from collections.abc import Callable

import torch
from torch import nn

from pairflow import rng
from pairflow.config import Redi, TeachSettings
from pairflow.training.objectives import FlowObjective


def draw_pairs(
    network: nn.Module, noise, settings: TeachSettings, *, length: int, prediction: str, device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs (x0, x1), each (count, N) on the CPU: uniform sources and the teacher's samples of them.

    `network` is the teacher, `prediction` the kind of denoiser that it is. A batch is a function of the seed,
    the method and its first row.
    """
    update = settings.model_dump(include={"sampler", "steps", "conversion"})
    batch = noise.rows_at_once(length)
    sources, samples = [], []
    for first in range(0, settings.count, batch):
        rows = min(batch, settings.count - first)
        seed = rng.stream_seed(settings.seed, "pairs", settings.method, first)
        generator = torch.Generator(device).manual_seed(seed)
        x0 = noise.source((rows, length), generator, device)
        sources.append(x0.cpu())
        x1 = noise.sample(network, x0, **update, prediction=prediction, generator=generator)
        samples.append(x1.cpu())
    return torch.cat(sources), torch.cat(samples)


def objective(settings: Redi, *, x0, x1, noise, loss, seed, device, cache=None) -> Callable:
    """The base's own loss on the teacher's pairs x0, x1 (M, N)."""
    return FlowObjective(x1, x0, noise, settings.batch_size, loss, seed, device)
