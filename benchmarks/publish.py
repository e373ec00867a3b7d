"""Copies a trained model into the package: only its averaged weights, in half precision.

    python benchmarks/publish.py results/zinc250k_groups/seed0/models/ot zinc250k

Its card, pairflow/models/NAME/README.md, is written by hand. `config.json` has the sizes of the network under
the names that model hubs know.
"""

import argparse
import json
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
    (target / "config.json").write_text(json.dumps(hub_config(model), indent=1) + "\n", encoding="utf-8")
    for file in sorted(target.iterdir()):
        print(f"{file}: {file.stat().st_size:,} bytes")


def hub_config(model: Model) -> dict:
    """The sizes of a model of tokens."""
    settings = model.network_settings
    return {
        "model_type": "pairflow",
        "architectures": [type(model.network).__name__],
        "vocab_size": model.vocabulary_size,
        "max_position_embeddings": model.length,
        "hidden_size": settings.get("width") or settings["channels"],
        "num_hidden_layers": settings["blocks"],
        "torch_dtype": "float16",
    }


if __name__ == "__main__":
    main()
