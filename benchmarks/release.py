"""How far the sources of the authors' release lie from their rows on CIFAR-10: a test of two explanations.

    git clone <the release> release && pip install -e release/df_cuda      (needs CUDA's compiler)
    python benchmarks/release.py --out benchmarks/records/release.json     (a GPU; one minute)

The paper prints FID 269.87 for PairFlow and 328.83 for Random at one step on CIFAR-10, where Algorithm 1's
sources are independent of their rows (docs/results.md, "CIFAR-10's pairs"): 3072 * 255/256 = 3,060.0 of 3,072
tokens differ, with a standard error of 0.1 over 1,000 rows. Two things in the release could make its sources
nearer than that, and this script tells them apart:

- A race. Its kernel `sum_same_tokens_large_cuda` reuses a tile of 16 rows in shared memory without a second
  barrier, so that the weight of one row can meet the tokens of another. A row's own tile is safe only where
  the batch starts at a multiple of 16: then batches of 32 and of 100 differ.
- The option `tau`, a temperature that the paper does not mention: 0.9 leaves 70 tokens, 0.8 leaves 238.
  Its default is 1, at which batches of any size should give 3,060.0.

It has not been run yet, for want of a GPU. Nothing of the release is copied: the module `df_cuda` is imported
from where it was installed.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from pairing import commit, machine, read_images

Invert = Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]  # rows, all rows, tau -> sources

CASES = ((32, 1.0), (100, 1.0), (32, 0.9))  # rows at once, tau
STEPS = 20
SYMBOLS = 256
TILE = 16  # rows of the kernel's shared memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="rows whose sources are computed")
    parser.add_argument("--out", type=Path, help="the JSON record")
    options = parser.parse_args()
    images = read_images()
    if images is None:
        parser.error("PAIRFLOW_DATA_DIR: expected a folder with cifar10_subset.npz")
    if not torch.cuda.is_available():
        parser.error("the release needs a CUDA device, and none is visible")
    keys = with_mirror_images(images)
    record = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "configuration": {"keys": len(keys), "rows": options.rows, "steps": STEPS, "seed": 0},
        "distance_of_independent_sources": independent(keys.shape[1]),
        "cases": list(measure(by_the_release, keys, options.rows, "cuda")),
        "load_after": os.getloadavg()[0],
    }
    print(json.dumps(record, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def by_the_release(rows: torch.Tensor, keys: torch.Tensor, tau: float) -> torch.Tensor:
    """Sources of the rows (B, N) among the keys (M, N), by the release's own function."""
    import df_cuda

    return df_cuda.inversion(rows, keys, num_steps=STEPS, tau=tau)


def with_mirror_images(images: np.ndarray) -> np.ndarray:
    """Images (M, 3072) and their mirror images as the release has them: height, width, channel."""
    upright = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.concatenate([upright, upright[:, :, ::-1]]).reshape(2 * len(images), -1)


def independent(length: int) -> dict[str, float]:
    """Mean Hamming distance of independent sources, and the deviation of one row's."""
    share = (SYMBOLS - 1) / SYMBOLS
    return {"mean": length * share, "deviation": float(np.sqrt(length * share * (1 - share)))}


def measure(invert: Invert, keys: np.ndarray, count: int, device: str) -> Iterator[dict]:
    """For each case the distance of the first `count` rows to their sources."""
    expected = independent(keys.shape[1])
    everything = torch.as_tensor(keys.astype(np.int64), device=device)
    for batch, tau in CASES:
        torch.manual_seed(0)
        starts = range(0, count, batch)
        sources = [invert(everything[start : min(start + batch, count)], everything, tau) for start in starts]
        distance = (torch.cat(sources) != everything[:count]).sum(1).double().cpu().numpy()  # (count,)
        safe = np.arange(count) // batch * batch % TILE == 0
        error = expected["deviation"] / np.sqrt(count)
        yield {
            "batch": batch,
            "tau": tau,
            "distance": float(distance.mean()),
            "standard_error": float(distance.std(ddof=1) / np.sqrt(count)),
            "deviations_from_independent": float((distance.mean() - expected["mean"]) / error),
            "distance_in_batches_from_a_multiple_of_16": mean_or_none(distance[safe]),
            "distance_in_other_batches": mean_or_none(distance[~safe]),
        }


def mean_or_none(values: np.ndarray) -> float | None:
    """The mean, None of no values."""
    return float(values.mean()) if len(values) else None


if __name__ == "__main__":
    main()
