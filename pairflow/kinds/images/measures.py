"""Distances between sets of images, from their features (n, D), class probabilities (n, C) or pixels.

An extractor, a network of the module `extractors`, computes features and probabilities. The Fréchet distance
is in `metrics.frechet`. See docs/method.md, "Distances between images".
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pairflow.errors import InputError

if TYPE_CHECKING:
    import torch


# Rows of a distance matrix that are in memory at a time.
_SAMPLE_ROWS, _DATA_ROWS = 1024, 4096


def inception_score(probabilities: ArrayLike, splits: int = 10) -> float:
    """Return the Inception Score of Salimans et al. 2016, from the class probabilities (n, C) of n images.

    It is exp(mean over images x of KL(p(y|x) || p(y))), where p(y) is the mean of p(y|x). The score depends
    on the number of images: as usual, it is averaged over `splits` parts of the rows in their order. Raises
    InputError for fewer images than `splits`.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if len(probabilities) < splits:
        raise InputError(f"Inception Score: expected at least {splits} samples, found {len(probabilities)}")
    scores = []
    for part in np.array_split(probabilities, splits):
        marginal = part.mean(axis=0)
        # 0 log 0 = 0, also where a class has the probability 0 in all rows, so that p(y) = 0.
        ratio = np.divide(part, marginal, out=np.ones_like(part), where=(part > 0) & (marginal > 0))
        scores.append(float(np.exp((part * np.log(ratio)).sum(axis=1).mean())))
    return float(np.mean(scores))


def nearest(
    samples: ArrayLike, data: ArrayLike, *, device: "torch.device | str" = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Find the row of `data` (M, N) that is nearest to each row of `samples` (B, N), by L2 distance.

    Returns distances (B,) float64 and row indices (B,) int64, the first of several nearest rows. All values
    must be integers, 0 or more. The result is exact, because |a - b|^2 = |a|^2 + |b|^2 - 2 a.b adds only
    integers that float32 (below 2^24) or float64 holds.
    """
    import torch

    samples, data = np.asarray(samples), np.asarray(data)
    top = max(int(samples.max(initial=0)), int(data.max()))
    dtype = torch.float32 if 3 * data.shape[1] * top**2 < 2**24 else torch.float64

    def rows(part: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(part)).to(device).to(dtype)

    squares, indices = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for first in range(0, len(samples), _SAMPLE_ROWS):
        part = rows(samples[first : first + _SAMPLE_ROWS])
        best = torch.full((len(part),), torch.inf, dtype=dtype, device=device)
        index = torch.zeros(len(part), dtype=torch.int64, device=device)
        for start in range(0, len(data), _DATA_ROWS):
            block = rows(data[start : start + _DATA_ROWS])
            smallest, row = torch.min(block.square().sum(1) - 2 * (part @ block.T), dim=1)
            index = torch.where(smallest < best, row + start, index)
            best = torch.minimum(smallest, best)
        squares.append((best + part.square().sum(1)).cpu().numpy().astype(np.float64))
        indices.append(index.cpu().numpy())
    return np.sqrt(np.concatenate(squares)), np.concatenate(indices)


def most_similar(
    samples: np.ndarray, data: np.ndarray, *, device: "torch.device | str" = "cpu"
) -> np.ndarray:
    """Return the largest cosine (B,) between each row of `samples` (B, D) and a row of `data` (M, D), to
    about 1e-6."""
    import torch

    def unit(features: np.ndarray) -> torch.Tensor:
        rows = torch.from_numpy(np.array(features, dtype=np.float32)).to(device)
        return torch.nn.functional.normalize(rows, dim=1)

    directions = unit(data)
    cosines = [np.empty(0)]
    for first in range(0, len(samples), _SAMPLE_ROWS):
        largest = (unit(samples[first : first + _SAMPLE_ROWS]) @ directions.T).amax(1)
        cosines.append(largest.cpu().numpy().astype(np.float64))
    return np.concatenate(cosines)
