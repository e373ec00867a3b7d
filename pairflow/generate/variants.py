"""Variants of rows: noised, and denoised by a model from there. See docs/method.md, "Sampling"."""

from collections.abc import Iterator, Sequence
from itertools import count, repeat

import torch
from torch import Tensor

from pairflow.flow.corruption import interpolate
from pairflow.flow.schedule import DIFFUSION, Linear
from pairflow.training.model import FIRST_ROWS, DiscreteModel, Draws


def vary(
    model: DiscreteModel,
    settings: Draws,
    nfe: int,
    rows: Tensor,
    noise: float,
    *labels: str | int,
    given: Tensor | None = None,
) -> Tensor:
    """Rows x1 (B, N) with a share `noise` of their positions, on average, drawn again from the source, and
    denoised in `nfe` steps from there: (B, N) on the CPU.

    They are a function of the settings' seed and the `labels`. Symbols (N,) that are `given` are kept. There
    is no greedy tail: the mode of a leave-one-out ignores the symbol that a position holds, so that it would
    change rare symbols of x1 without any noise.
    """
    settings = settings.model_copy(update={"greedy_tail": False})
    generator, rows = model.generator(settings, *labels), rows.to(model.device)
    source = model.corruption.source(tuple(rows.shape), generator, model.device)
    kappa = max(1 - noise, DIFFUSION.start)  # networks know no more noise than samplers
    x_t = interpolate(source, rows, kappa, generator)
    return model.denoise(settings, nfe, x_t, generator, given, schedule=Linear(kappa))


def vary_without_end(
    model: DiscreteModel,
    settings: Draws,
    nfe: int,
    seeds: Tensor,
    noises: Sequence[float],
    given: Tensor | None = None,
) -> Iterator[tuple[list[int], int, float]]:
    """Rows of N tokens from `vary`, each with the number of its seed and its noise: again and again one of
    each of the `seeds` (S, N), at one noise after the other."""
    order = torch.arange(len(seeds)).repeat(max(1, FIRST_ROWS // (len(seeds) * len(noises))))
    for batch in count():
        noise = noises[batch % len(noises)]
        for part, numbers in enumerate(order.split(model.batch_rows)):
            labels = "variants", batch, part
            rows = vary(model, settings, nfe, seeds[numbers], noise, *labels, given=given)
            yield from zip(rows.tolist(), numbers.tolist(), repeat(noise))
