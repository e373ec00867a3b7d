"""The public function `sample`: token rows of a trained model, as an array."""

from pathlib import Path
from typing import Literal

import numpy as np

from pairflow import published
from pairflow.arguments import checked_integer
from pairflow.artifacts import token_dtype
from pairflow.config import FlowSampleSettings, SampleSettings, check
from pairflow.config.sampling import SamplerName
from pairflow.limits import MOST_NFE, MOST_SAMPLES


def sample(
    model: str | Path,
    count: int,
    *,
    nfe: int,
    seed: int = 0,
    sampler: SamplerName = "ancestral",
    device: Literal["auto", "cuda", "cpu"] = "auto",
) -> np.ndarray:
    """Samples of a trained model: the first trial of `pairflow sample` with the same seed.

    Args:
        model: the folder of a model, such as results/demo/seed0/models/pairflow.
        count: number of samples.
        nfe: number of sampling steps.
        seed: every random number follows from it.
        sampler: the update rule.
        device: "auto" uses the GPU if there is one.

    Returns:
        (count, N) token rows. Those of molecules and images become molecules and images by the data set's
        vocabulary; `pairflow sample --count` writes molecules as files.

    Raises:
        InputError: if an argument is out of range, or the folder holds no model.

    Example:
        >>> rows = pairflow.sample("results/demo/seed0/models/pairflow", 100, nfe=4)  # doctest: +SKIP
    """
    from pairflow.runtime.device import choose
    from pairflow.runtime.resume import split_rows
    from pairflow.training.model import Model
    from pairflow.training.velocity import follow

    count = checked_integer("count", count, 1, MOST_SAMPLES)
    nfe = checked_integer("nfe", nfe, 1, MOST_NFE)
    seed = checked_integer("seed", seed, 0, 2**32 - 1)
    values = {"samples": count, "trials": 1, "nfe": nfe, "seed": seed, "sampler": sampler}
    settings = check(SampleSettings, values, "sample")
    loaded = Model.load(published.locate(model), device=choose(device, None))
    if loaded.continuous:
        flow = FlowSampleSettings(samples=count, trials=1, nfe=nfe, seed=seed)
        blocks = split_rows(count, loaded.batch_rows)
        drawn = np.concatenate([follow(loaded, flow, rows, 0, first) for first, rows in blocks])
        drawn = drawn[:, : loaded.length]
        size = loaded.vocabulary_size
        return drawn if size is None else drawn.astype(token_dtype(size))
    rows = [
        loaded.draw(settings, nfe, size, "sample", 0, first)[1].numpy()
        for first, size in split_rows(count, loaded.batch_rows)
    ]
    return np.concatenate(rows).astype(token_dtype(loaded.dimensions[1]))
