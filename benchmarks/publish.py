"""Copies a trained model into the package: only its averaged weights, in half precision.

    python benchmarks/publish.py results/zinc250k_selfies/seed0/models/pairflow zinc250k

Its card, pairflow/models/NAME/README.md, is written by hand.
"""

import argparse
from pathlib import Path

from pairflow.published import FOLDER
from pairflow.training.model import Model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="folder of the model")
    parser.add_argument("name")
    options = parser.parse_args()
    model, target = Model.load(options.model), FOLDER / options.name
    target.mkdir(parents=True, exist_ok=True)
    model.save(target / "model.safetensors", target / "model.json", ema=model.network.half())
    for name, content in model.stored_files().items():
        (target / name).write_bytes(content)
    for file in sorted(target.iterdir()):
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
