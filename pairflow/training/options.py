"""Options of a training step that are not settings: output files, device and so on. Needs no torch."""

from pathlib import Path
from typing import NamedTuple

VOCABULARY, KNOWN = "vocabulary.json", "known.parquet"
MODEL_FILES = ("model.safetensors", "model.json", "log.parquet", VOCABULARY, KNOWN)  # in a model's folder


class ModelPaths(NamedTuple):
    """The main files of a training run; a model's additional files are in the folder of the weights."""

    model: Path
    description: Path
    log: Path


class FitOptions(NamedTuple):
    """How a training runs.

    `resume` is the folder of saved states, `save_every` the seconds between them, `micro_batch` the number of
    rows per forward pass (0: all), and `quiet` hides the progress bar.
    """

    resume: Path | None = None
    save_every: float = 300.0
    micro_batch: int = 0
    device: str = "auto"
    threads: int | None = None
    quiet: bool = False
