"""Variants of rows: partly noised, then denoised by a model. See docs/method.md, "Sampling"."""

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
    first: int = 0,
) -> Tensor:
    """Replace a share `noise` of the positions of `rows` (B, N), on average, by source symbols, and denoise
    the rows in `nfe` steps: (B, N) on the CPU.

    The result is a function of the settings' seed and the `labels`. The symbols `given` (N,) are fixed. The
    rows are samples from number `first` on, which decides the targets of a condition.
    """
    # No greedy tail: the mode of a leave-one-out ignores a position's symbol, so rare symbols would change
    # even without noise.
    settings = settings.model_copy(update={"greedy_tail": False})
    generator, rows = model.generator(settings, *labels), rows.to(model.device)
    source = model.corruption.source(tuple(rows.shape), generator, model.device)
    kappa = max(1 - noise, DIFFUSION.start)  # networks are not trained for less kappa
    x_t = interpolate(source, rows, kappa, generator)
    return model.denoise(settings, nfe, x_t, generator, given, first, schedule=Linear(kappa))


def vary_without_end(
    model: DiscreteModel,
    settings: Draws,
    nfe: int,
    seeds: Tensor,
    noises: Sequence[float],
    given: Tensor | None = None,
) -> Iterator[tuple[list[int], int, float]]:
    """An endless stream of variants of data rows, the `seeds` (S, N), by `vary`.

    It cycles through the seeds and the `noises`. Each item is a row, the number of its seed, and its noise.
    """
    order = torch.arange(len(seeds)).repeat(max(1, FIRST_ROWS // (len(seeds) * len(noises))))
    for batch in count():
        noise = noises[batch % len(noises)]
        for part, numbers in enumerate(order.split(model.batch_rows)):
            labels = "variants", batch, part
            rows = vary(model, settings, nfe, seeds[numbers], noise, *labels, given=given)
            yield from zip(rows.tolist(), numbers.tolist(), repeat(noise))
