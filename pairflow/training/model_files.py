"""What the steps that make a model share: its files, written together."""

from pathlib import Path
from typing import Any

from pairflow.artifacts import Metadata, atomic, write_table
from pairflow.training import model as checkpoint
from pairflow.training.loop import Trained


def write_model(
    model: Path,
    description: Path,
    log: Path,
    trained: Trained,
    facts: dict[str, Any],
    files: dict[str, bytes],
) -> None:
    """Weights, description and log, and beside the weights the `files` that the model carries, by name."""
    beside = [model.parent / name for name in files]
    with atomic(model, description, log, *beside) as [new_model, new_description, new_log, *new_files]:
        checkpoint.save(new_model, new_description, trained.network, trained.ema, facts)
        write_table(new_log, trained.log, Metadata(kind="training log"))
        for path, content in zip(new_files, files.values(), strict=True):
            path.write_bytes(content)
