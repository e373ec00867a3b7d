"""Variants of rows: partly noised, then denoised by a model. See docs/method.md, "Sampling"."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, repeat

import torch
from torch import Tensor

from pairflow.flow.corruption import interpolate
from pairflow.flow.plan import SamplingPlan
from pairflow.flow.schedule import DIFFUSION, Linear
from pairflow.training.model import FIRST_ROWS, DiscreteModel, Draws
from pairflow.training.objectives import random_generator


def vary(
    model: DiscreteModel, plan: SamplingPlan, rows: Tensor, noise: float, seed: int, *stream: str | int
) -> Tensor:
    """Draw variants (B, N) of token `rows` (B, N), on the CPU: noise them partly, then denoise them.

    A share `noise` of all positions, on average, is replaced by symbols of the noise. The plan's schedule is
    replaced, and its greedy tail left out. All random numbers are a function of the seed and the `stream`,
    the name of the random numbers.
    """
    generator, rows = random_generator(model.device, seed, *stream), rows.to(model.device)
    source = model.corruption.source(tuple(rows.shape), generator, model.device)
    kappa = max(1 - noise, DIFFUSION.start)  # networks are not trained for less kappa
    x_t = interpolate(source, rows, kappa, generator)
    # No greedy tail: the mode of a leave-one-out ignores a position's symbol, so rare symbols would change
    # even without noise.
    plan = replace(plan, greedy_tail=False, schedule=Linear(kappa))
    return model.corruption.sample(model.network, x_t, plan, generator).cpu()


def vary_without_end(
    model: DiscreteModel,
    settings: Draws,
    nfe: int,
    seeds: Tensor,
    noises: Sequence[float],
    given: Tensor | None = None,
) -> Iterator[tuple[list[int], int, float]]:
    """Yield an endless stream of variants, drawn by `vary`, of the data rows `seeds` (S, N).

    It cycles through the seeds and through `noises`, the shares of positions to noise. Each item is (variant,
    row number of its seed in `seeds`, share). `given` has the symbols (N,) that all variants keep, -1 where
    they keep none.
    """
    order = torch.arange(len(seeds)).repeat(max(1, FIRST_ROWS // (len(seeds) * len(noises))))
    for batch in count():
        noise = noises[batch % len(noises)]
        for part, numbers in enumerate(order.split(model.batch_rows)):
            plan = replace(model.plan(settings, nfe, len(numbers)), given=given)
            rows = vary(model, plan, seeds[numbers], noise, settings.seed, "variants", batch, part)
            yield from zip(rows.tolist(), numbers.tolist(), repeat(noise))
