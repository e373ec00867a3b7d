"""MNIST-Binary at 8 x 8 pixels, for `epochs.py`: `digits`, but with 60,000 rows.

    python benchmarks/mnist8.py mnist8/digits

The border of two pixels is cut off, and a pixel is white if five of its nine are. It writes `data/` and
`reference/` as the workflow does for `digits`, with its classifier; give `epochs.py` the same folder.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

from pairflow.config import check
from pairflow.data.prepared import write_prepared
from pairflow.kinds import source_of
from pairflow.kinds.images.prepare import contract
from pairflow.kinds.images.settings import Images


def shrink(rows: np.ndarray) -> np.ndarray:
    """Rows (M, 784) of 0 and 1 as (M, 64)."""
    blocks = rows.reshape(-1, 28, 28)[:, 2:26, 2:26].reshape(-1, 8, 3, 8, 3)
    return (blocks.sum(axis=(2, 4)) >= 5).reshape(-1, 64).astype(np.uint8)


def main(root: Path) -> None:
    data, reference = root / "data", root / "reference"
    for folder in (data, reference):
        folder.mkdir(parents=True, exist_ok=True)
    settings = check(Images, {"source": "mnist_binary"}, "data")
    prepared = source_of(settings).read(settings, progress=False)
    rows = {"train": shrink(prepared.train), "validation": shrink(prepared.test)}
    labels = {"train": prepared.train_labels, "validation": prepared.test_labels}
    files = {split: data / f"{split}.parquet" for split in rows}
    others = {"vocabulary": data / "vocabulary.json"}
    write_prepared(files | others, rows, contract((1, 8, 8), 2), 2, {}, {}, labels=labels, shape=[1, 8, 8])
    command = [sys.executable, "-m", "pairflow", "reference", "--weights=digits", "--threads=1", "--quiet"]
    for name, split in (("train", "train"), ("test", "validation")):
        paths = ["--tokens", str(files[split]), "--out", str(reference / f"{name}.parquet")]
        subprocess.run([*command, *paths], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
