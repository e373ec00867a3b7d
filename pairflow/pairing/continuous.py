"""Forward pairing of continuous data: each source x0 ~ N(0, I) walks to the data point that it belongs to.

The path is x_t = (1 - t) x0 + t x1. Its velocity for the empirical data d_1..d_M has a closed form (PairFlow,
appendix E; docs/continuous.md, "The closed-form velocity"):

    w_m(x, t) = softmax over m of -|x - t d_m|^2 / (2 (1 - t)^2)
    v_t(x)    = (sum_m w_m d_m - x) / (1 - t)

An Euler step of size 1/T from t = s/T moves x by the share 1 / (T - s) of the way to sum_m w_m d_m, and the
last one lands on it. Three facts save digits or work, and change no pair:

1. The flow of data shifted by c is the flow of the data, seen from x - t c. So the data are centred first,
   which keeps the digits of float32.
2. A coordinate in which all data agree adds the same to every logit, and is left out.
3. Once a data point has all the weight, it keeps it. With z = (x - t d) / (1 - t), which is constant on the
   straight line to d, and r = t / (1 - t), the log of the ratio of the weights of d and another point e is

       L(r) = r z.(d - e) + r^2 |d - e|^2 / 2,   so that L(r') >= (r' / r) L(r) for r' > r, if L(r) > 0.

   Such a walk ends at d, and its further steps need not be computed.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pairflow import rng
from pairflow.arguments import checked_integer, require_unmasked, row_range
from pairflow.arrays import checked_points
from pairflow.errors import InputError
from pairflow.runtime.progress import bar

MAX_STEPS = 100_000  # (1 - t)^-2 of the last step, times squared distances, is then finite in float32
_CERTAIN = 1 - 1e-6  # the weight with which a data point has all of it (fact 3)
_WEIGHTS = {"cpu": 1 << 26, "cuda": 1 << 28}  # the most that a block of sources may have over all data
_BLOCK = 64  # sources of the smallest block; a CPU likes small ones, unless the data have many dimensions
_LARGEST_BLOCK = {"cpu": 1024, "cuda": 8192}


class Coupled(NamedTuple):
    """Pairs of a source and a data point, one row for each source."""

    x0: np.ndarray  # (M, ...) float32, the sources
    x1: np.ndarray  # (M, ...) float32, the data points that they belong to
    target: np.ndarray  # (M,) int64, the rows of these data points
    moved: np.ndarray  # (M,) float32, the distances of the walks' end points from x1


def empirical_velocity(x: ArrayLike, data: ArrayLike, t: float) -> np.ndarray:
    """v_t(x) = (sum_m w_m d_m - x) / (1 - t), the closed-form velocity of `data`, as the equation says.

    `x` (B, d) and `data` (M, d) are real numbers, `t` is in [0, 1). Returns (B, d) float64. It is slow and
    obviously right. Raises InputError for shapes that do not fit and for `t` outside [0, 1).
    """
    require_unmasked(x, "x")
    require_unmasked(data, "data")
    x, data = np.asarray(x, dtype=np.float64), np.asarray(data, dtype=np.float64)
    if x.ndim != 2 or data.ndim != 2 or x.shape[1] != data.shape[1] or not data.size:
        raise InputError(
            f"x, data: expected two arrays with rows of the same length, and at least one row of "
            f"data; found shapes {x.shape} and {data.shape}"
        )
    if not 0 <= t < 1:
        raise InputError(f"t: expected a time in [0, 1), found {t}")
    velocity = np.empty(x.shape)
    for row, point in enumerate(x):
        logits = -((point - t * data) ** 2).sum(axis=1) / (2 * (1 - t) ** 2)
        weights = np.exp(logits - logits.max())
        velocity[row] = (weights @ data / weights.sum() - point) / (1 - t)
    return velocity


def pair_continuous(
    data: ArrayLike,
    *,
    steps: int = 100,
    seed: int = 0,
    device: str | torch.device = "auto",
    rows: tuple[int, int] | None = None,
    progress: bool = True,
) -> Coupled:
    """Sources x0 ~ N(0, I) and the data points that they belong to, as many pairs as there are data points.

    Each source walks along the closed-form velocity of the data from t = 0 to 1. Its data point is the one of
    largest weight in the last step; several sources may end at one point, and about 1 - 1/e = 63.2 % of the
    points are reached. See docs/continuous.md, "Forward pairing".

    Args:
        data: (M, ...) real numbers: vectors, images, or rows of any other shape.
        steps: T, the number of Euler steps.
        seed: 0 to 2^64 - 1; every source follows from it and from its row number.
        device: "cpu", "cuda", a torch device, or "auto": the GPU if there is one, else the CPU.
        progress: whether to show a progress bar.
        rows: (first, last) returns only the pairs first..last-1 of the whole pairing: a shard.

    Returns:
        The pairs. On one device and with one version of PyTorch, shards give exactly the rows of the whole:
        sources are always walked in the same blocks. Between devices, and between numbers of threads, sums in
        float32 round differently: a walk that stands between two data points may then end at the other one.

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
            target, moved = field.walk(torch.from_numpy(x0[:, varying]))
            inside = slice(max(first - start, 0), last - start)
            parts.append((x0[inside], target[inside], moved[inside]))
            rows_bar.update(len(parts[-1][0]))
    x0, target, moved = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Coupled(x0.reshape(-1, *points.shape[1:]), points[target].astype(np.float32), target, moved)


class _Field:
    """The closed-form velocity of centred data (M, d) on a device, and the walks along it."""

    def __init__(self, data: Tensor, steps: int, device: torch.device):
        self.data, self.steps = data.to(device), steps
        self.half_squares = self.data.square().sum(dim=1, dtype=torch.float64).float() / 2  # (M,)
        largest = min(_LARGEST_BLOCK[device.type], _WEIGHTS[device.type] // len(data))
        if device.type == "cpu":
            largest = min(largest, data.shape[1])
        self.block = max(_BLOCK, largest)

    def weights(self, x: Tensor, step: int) -> Tensor:
        """w_m(x, t) (B, M) at t = step / T; what is the same for all m is left out of the logits."""
        r, scale = step / (self.steps - step), self.steps / (self.steps - step)  # t / (1 - t), 1 / (1 - t)
        logits = torch.addmm(self.half_squares, x, self.data.T, beta=-r * r, alpha=r * scale)
        return torch.softmax(logits, dim=1)

    def walk(self, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Where the sources x (B, d) end: rows of the data, and distances from them to the end points."""
        x = x.to(self.data.device)
        walking = torch.arange(len(x), device=x.device)  # the rows that have not ended
        target, moved = torch.zeros_like(walking), torch.zeros(len(x), device=x.device)
        for step in range(self.steps):
            weights = self.weights(x, step)
            mean = (self.data.T @ weights.T).T  # in few dimensions ten times as fast as the other order
            x = x + (mean - x) / (self.steps - step)
            ends = weights.amax(dim=1) > _CERTAIN
            if step == self.steps - 1:
                target[walking] = weights.argmax(dim=1)
                moved[walking] = (x - self.data[target[walking]]).norm(dim=1)
            elif ends.any():
                target[walking[ends]] = weights[ends].argmax(dim=1)
                walking, x = walking[~ends], x[~ends]
                if not len(walking):
                    break
        return target.cpu().numpy(), moved.cpu().numpy()


def torch_device(device: str | torch.device) -> torch.device:
    """The device of that name, "auto" the GPU if there is one; InputError if it is not there."""
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
