"""What a training step is told beside its settings: its output files and how it runs. Needs no torch."""

from pathlib import Path
from typing import NamedTuple

VOCABULARY, KNOWN = "vocabulary.json", "known.parquet"
MODEL_FILES = ("model.safetensors", "model.json", "log.parquet", VOCABULARY, KNOWN)  # in a model's folder


class ModelPaths(NamedTuple):
    """The files that a training writes; a model's other files are put beside the weights."""

    model: Path
    description: Path
    log: Path


class FitOptions(NamedTuple):
    """How a training runs: saved states, rows per forward pass (0: all), device, CPU threads, progress."""

    resume: Path | None = None
    save_every: float = 300.0
    micro_batch: int = 0
    device: str = "auto"
    threads: int | None = None
    quiet: bool = False
