"""Finished experiments with known numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pages import browser, compile_latex, open_page  # noqa: F401

from pairflow.artifacts import as_metrics
from pairflow.config import Experiment
from pairflow.config.file import parse as configured
from pairflow.report.results import FinishedExperiment

CONFIGURATION = Path(__file__).parents[3] / "workflow_config.yaml"
SHIPPED = configured(CONFIGURATION.read_text(), CONFIGURATION)["experiments"]


@pytest.fixture
def make_experiment() -> Callable[..., Experiment]:
    """An experiment at the paper's scale on one of its data sets, with some settings replaced."""

    def build(source: str = "qm9", data: dict[str, Any] | None = None, **changes: Any) -> Experiment:
        settings = SHIPPED[source] | {
            **{"methods": ("udlm", "pairflow"), "correlation": None},
            "data": SHIPPED[source]["data"] | (data or {}),
            "evaluations": {"main": SHIPPED[source]["evaluations"]["main"]},
        }
        return Experiment(**settings | changes)

    return build


@pytest.fixture
def metric_rows() -> Callable[..., pd.DataFrame]:
    """Metric rows of (method, NFE) -> a list of trials per seed."""

    def build(values: dict[tuple[str, int], Any], metric: str = "valid", **shared: Any) -> pd.DataFrame:
        rows = [
            {"method": method, "nfe": nfe, "metric": metric, "seed": seed, "trial": trial, "value": value}
            for (method, nfe), seeds in values.items()
            for seed, trials in enumerate(seeds)
            for trial, value in enumerate(trials)
        ]
        return as_metrics(pd.DataFrame(rows), **{"evaluation": "main", "samples": 1024} | shared)

    return build


@pytest.fixture
def make_run(make_experiment, metric_rows) -> Callable[..., FinishedExperiment]:
    """A run of metric rows, or of (method, NFE) -> trials per seed as `valid`; the rest are settings."""

    def build(
        rows: Any, name: str = "qm9", timings: pd.DataFrame | None = None, **settings: Any
    ) -> FinishedExperiment:
        frame = rows if isinstance(rows, pd.DataFrame) else metric_rows(rows)
        if timings is None:
            timings = pd.DataFrame(columns=["step", "method", "seconds", "device", "seed"])
        return FinishedExperiment(name, make_experiment(**settings), frame, timings)

    return build
