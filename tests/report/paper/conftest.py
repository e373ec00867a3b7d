"""Finished experiments with known numbers."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from pairflow.artifacts import as_metrics
from pairflow.config import Experiment
from pairflow.report.results import FinishedExperiment

DATA = {
    "qm9": {"source": "qm9", "length": 32},
    "zinc250k": {"source": "zinc250k", "length": 74},
    "mnist_binary": {"source": "mnist_binary"},
    "cifar10": {"source": "cifar10", "flips": True},
}
PAIRS = {"count": 10_000, "steps": 256}
SAMPLES = {"qm9": 1024, "zinc250k": 1024, "mnist_binary": 1000, "cifar10": 5000}


def experiment(
    source: str = "qm9",
    scale: str = "paper",
    seeds: tuple[int, ...] = (0, 1, 2),
    methods: tuple[str, ...] = ("udlm", "pairflow"),
    nfe: tuple[int, ...] = (1, 2),
    data: dict[str, Any] | None = None,
    **changes: Any,
) -> Experiment:
    run = {"batch_size": 256, "iterations": 100, "learning_rate": 1e-3}
    settings = {
        **{"description": "Constructed numbers", "scale": scale, "seeds": seeds, "methods": methods},
        "data": DATA[source] | (data or {}),
        "network": {"name": "mlp"},
        "training": run,
        "distillation": {"dcd": run | {"teacher_every": 10}, "redi": run | {"pairs": PAIRS}},
        "evaluations": {"main": {"nfe": nfe, "samples": SAMPLES[source], "trials": 10}},
    }
    return Experiment(**settings | changes)


def metrics(values: dict[tuple[str, int], Any], metric: str = "valid", **shared: Any) -> pd.DataFrame:
    """Metric rows of (method, NFE) -> a list of trials per seed."""
    rows = [
        {"method": method, "nfe": nfe, "metric": metric, "seed": seed, "trial": trial, "value": value}
        for (method, nfe), seeds in values.items()
        for seed, trials in enumerate(seeds)
        for trial, value in enumerate(trials)
    ]
    return as_metrics(pd.DataFrame(rows), **{"evaluation": "main", "samples": 1024} | shared)


@pytest.fixture
def make_experiment() -> Callable[..., Experiment]:
    return experiment


@pytest.fixture
def metric_rows() -> Callable[..., pd.DataFrame]:
    return metrics


@pytest.fixture
def make_run() -> Callable[..., FinishedExperiment]:
    """A run of metric rows, or of (method, NFE) -> trials per seed as `valid`; the rest are settings."""

    def build(
        rows: Any, name: str = "qm9", timings: pd.DataFrame | None = None, **settings: Any
    ) -> FinishedExperiment:
        frame = rows if isinstance(rows, pd.DataFrame) else metrics(rows)
        if timings is None:
            timings = pd.DataFrame(columns=["step", "method", "seconds", "device", "seed"])
        return FinishedExperiment(name, experiment(**settings), frame, timings)

    return build
