"""Forward pairing of continuous data: follow each source x0 ~ N(0, I) along the flow to its data point.

The path is x_t = (1 - t) x0 + t x1. Its velocity for the empirical data d_1..d_M has a closed form (PairFlow,
appendix E; docs/continuous.md, "The closed-form velocity"):

    w_m(x, t) = softmax over m of -|x - t d_m|^2 / (2 (1 - t)^2)
    v_t(x)    = (sum_m w_m d_m - x) / (1 - t)

An Euler step of size 1/T from t = s/T moves x by the fraction 1 / (T - s) of the way to sum_m w_m d_m; the
last step ends there. Three facts improve precision or save work without changing a pair:

1. Shifting the data by c shifts the flow by t c. So the data are centred first, for precision in float32.
2. A coordinate that is constant over the data adds the same number to every logit, and is left out.
3. Once a data point has all the weight, this stays so. With z = (x - t d) / (1 - t), which is constant on the
   straight line to d, and r = t / (1 - t), the log of the ratio of the weights of d and another point e is

       L(r) = r z.(d - e) + r^2 |d - e|^2 / 2,   so that L(r') >= (r' / r) L(r) for r' > r, if L(r) > 0.

   Such a trajectory ends at d, so its later steps are skipped.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pairflow import rng
from pairflow.arguments import checked_integer, row_range
from pairflow.arrays import checked_pair, checked_points
from pairflow.errors import InputError
from pairflow.runtime.progress import bar, bars_of_a_function

MAX_STEPS = 100_000  # keeps squared distances / (1 - t)^2 of the last step finite in float32
_CERTAIN = 1 - 1e-6  # a weight that counts as the whole weight (fact 3)
_WEIGHTS = {"cpu": 1 << 26, "cuda": 1 << 28}  # largest number of weights w_m of a block of sources
_BLOCK = 64  # sources of the smallest block: the fastest on a CPU, except for data of many dimensions
_LARGEST_BLOCK = {"cpu": 1024, "cuda": 8192}


class Coupled(NamedTuple):
    """Pairs of sources and data points: which points they are, and how near the trajectories come to them."""

    x0: np.ndarray  # (M, ...) float32, the sources
    x1: np.ndarray  # (M, ...) float32, their data points
    target: np.ndarray  # (M,) int64, the rows of these data points
    moved: np.ndarray  # (M,) float32, the distances between the trajectories' ends and x1


def empirical_velocity(x: ArrayLike, data: ArrayLike, t: float) -> np.ndarray:
    """Compute the velocity v_t(x) = (sum_m w_m d_m - x) / (1 - t) in closed form (PairFlow, appendix E).

    w_m is the softmax over the data points d_m of -|x - t d_m|^2 / (2 (1 - t)^2). This is a direct
    evaluation, to test faster code.

    Args:
        x: points (B, d).
        data: data points (M, d).
        t: time in [0, 1).

    Returns:
        The velocities (B, d) float64.

    Raises:
        InputError: if shapes do not fit, or `t` is out of range.
    """
    x, data = checked_pair("x", x, data, np.float64)
    if not 0 <= t < 1:
        raise InputError(f"t: expected a time in [0, 1), found {t}")
    velocity = np.empty(x.shape)
    for row, point in enumerate(x):
        logits = -((point - t * data) ** 2).sum(axis=1) / (2 * (1 - t) ** 2)
        # Without the maximum all weights could underflow to 0, and their quotient would be NaN.
        weights = np.exp(logits - logits.max())
        velocity[row] = (weights @ data / weights.sum() - point) / (1 - t)
    return velocity


@bars_of_a_function()
def pair_continuous(
    data: ArrayLike,
    *,
    steps: int = 100,
    seed: int = 0,
    device: str | torch.device = "auto",
    rows: tuple[int, int] | None = None,
    progress: bool = True,
) -> Coupled:
    """Pair sources x0 ~ N(0, I) with data points, by forward pairing (PairFlow, appendix E).

    There are as many pairs as data points. Each source is integrated along the closed-form velocity of the
    data from t = 0 to 1; its data point is the one with the largest weight in the last step. Several sources
    may end at one point, and about 1 - 1/e = 63.2 % of the points are reached. See docs/continuous.md,
    "Forward pairing".

    Args:
        data: (M, ...) real numbers: vectors, images, or rows of any other shape.
        steps: T, the number of Euler steps.
        seed: 0 to 2^64 - 1; every source follows from it and from its row number.
        device: "cpu", "cuda", a torch device, or "auto": the GPU if there is one, else the CPU.
        progress: whether to show a progress bar, after a second, in a terminal or a notebook.
        rows: (first, last) returns only the pairs first..last-1 of the whole pairing: a shard.

    Returns:
        The pairs. On one device and with one version of PyTorch, shards have exactly the rows of the whole
        pairing, because sources are always integrated in the same blocks. Other devices and numbers of
        threads round sums in float32 differently: a trajectory between two data points may then end at the
        other one.

    Raises:
        InputError: if an argument is out of range, or the device is not available.

    Example:
        >>> import numpy as np, pairflow
        >>> data = np.random.default_rng(0).normal(size=(100, 2))
        >>> x0, x1, target, moved = pairflow.pair_continuous(data, progress=False)
        >>> x1.shape
        (100, 2)
    """
    points = checked_points(data)
    steps = checked_integer("steps", steps, 1, MAX_STEPS)
    seed = checked_integer("seed", seed, 0, 2**64 - 1)
    first, last = row_range(rows, len(points))
    flat = points.reshape(len(points), -1)
    varying = np.flatnonzero((flat != flat[0]).any(axis=0))
    centred = (flat[:, varying] - flat[:, varying].mean(axis=0, dtype=np.float64)).astype(np.float32)
    field = _Field(torch.from_numpy(centred), steps, torch_device(device))
    size = field.block
    parts = []
    with bar(total=last - first, desc="pairing", unit="row", quiet=not progress) as rows_bar:
        for start in range(first - first % size, last, size):  # whole blocks, also where a shard cuts them
            x0 = rng.normals(seed, np.arange(start, start + size), flat.shape[1])
            target, moved = field.integrate(torch.from_numpy(x0[:, varying]))
            inside = slice(max(first - start, 0), last - start)
            parts.append((x0[inside], target[inside], moved[inside]))
            rows_bar.update(len(parts[-1][0]))
    x0, target, moved = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Coupled(x0.reshape(-1, *points.shape[1:]), points[target].astype(np.float32), target, moved)


class _Field:
    """Moves sources along the closed-form velocity of centred data (M, d), in T = `steps` Euler steps.

    `block` is the number of sources to move at a time.
    """

    def __init__(self, data: Tensor, steps: int, device: torch.device):
        self.data, self.steps = data.to(device), steps
        # Sums in float64 leave only one rounding, to float32, however many coordinates there are.
        self.half_squares = self.data.square().sum(dim=1, dtype=torch.float64).float() / 2  # (M,)
        # Blocks must not depend on the shard: products of another size may round differently.
        largest = min(_LARGEST_BLOCK[device.type], _WEIGHTS[device.type] // len(data))
        if device.type == "cpu":
            largest = min(largest, data.shape[1])
        self.block = max(_BLOCK, largest)

    def weights(self, x: Tensor, step: int) -> Tensor:
        """Return w_m(x, t) (B, M) at t = step / T, from logits without the terms that are equal for all m."""
        r, scale = step / (self.steps - step), self.steps / (self.steps - step)  # t / (1 - t), 1 / (1 - t)
        # -|x - t d_m|^2 / (2 (1 - t)^2) without its |x|^2: r scale x.d_m - r^2 |d_m|^2 / 2.
        logits = torch.addmm(self.half_squares, x, self.data.T, beta=-r * r, alpha=r * scale)
        return torch.softmax(logits, dim=1)

    def integrate(self, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Move sources x (B, d) from t = 0 to 1.

        Returns the row numbers (B,) of the data points that they reach, and the distances (B,) between these
        points and the ends of the trajectories.
        """
        x = x.to(self.data.device)
        active = torch.arange(len(x), device=x.device)  # the sources that have not ended
        target, moved = torch.zeros_like(active), torch.zeros(len(x), device=x.device)
        for step in range(self.steps):
            weights = self.weights(x, step)
            mean = (self.data.T @ weights.T).T  # in few dimensions ten times as fast as weights @ data
            x = x + (mean - x) / (self.steps - step)
            ends = weights.amax(dim=1) > _CERTAIN
            if step == self.steps - 1:
                target[active] = weights.argmax(dim=1)
                moved[active] = (x - self.data[target[active]]).norm(dim=1)
            elif ends.any():
                # These sources end exactly at their points (fact 3), so `moved` stays 0.
                target[active[ends]] = weights[ends].argmax(dim=1)
                active, x = active[~ends], x[~ends]
                if not len(active):
                    break
        return target.cpu().numpy(), moved.cpu().numpy()


def torch_device(device: str | torch.device) -> torch.device:
    """Return the torch device; "auto" is the GPU if there is one.

    Raises InputError if the device is unknown or not available.
    """
    name = str(device)
    if name != "auto" and name.partition(":")[0] not in ("cpu", "cuda"):
        raise InputError(f'device: expected "auto", "cpu" or "cuda", found {name!r}')
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("device: torch sees no CUDA device")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(name)
        torch.empty(0, device=chosen)
    except RuntimeError as error:
        raise InputError(f"device: {name!r}: {str(error).splitlines()[0]}") from None
    return chosen
