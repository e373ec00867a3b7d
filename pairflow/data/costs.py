"""What short jobs take, by the sizes of their data.

The numbers are measurements of one machine: AMD EPYC, 2 cores, torch 2.15, 2026-11-21. A step takes 3 s to
import torch and 1 s to import RDKit.
"""

from typing import Any, NamedTuple

from pairflow.config import Experiment
from pairflow.data.source import DatasetSize


class Cost(NamedTuple):
    """Seconds, MiB, and bytes that stay on disk; None for what nobody knows."""

    seconds: float | None
    memory_mb: float | None
    disk: float | None


class ShortJob(NamedTuple):
    """A job of an experiment: its own `settings`, how many `samples` it measures, and its threads."""

    experiment: Experiment
    sizes: DatasetSize
    settings: Any
    samples: int
    threads: int


def token_costs(job: ShortJob) -> dict[str, Cost]:
    """The costs of jobs that prepare and compare plain rows of tokens, by their rules."""
    sizes = job.sizes
    tokens, compared = sizes.total * sizes.length, sizes.rows * sizes.length
    seconds = 2.0 + job.samples * (1.1e-10 * compared + 4e-7 * sizes.length)
    memory = 250.0 + 2e-6 * compared
    return {
        "preprocess": Cost(1.0 + 5e-8 * tokens, 150.0 + 2e-5 * tokens, sizes.total * sizes.row_bytes),
        "evaluate": Cost(seconds, memory, 3e4),
        "floor": Cost(seconds, memory, 1e6),
    }
