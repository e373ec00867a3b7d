"""Runs with constructed numbers."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from pairflow.report.results import FinishedExperiment


@pytest.fixture
def make_run(make, metric_rows) -> Callable[..., FinishedExperiment]:
    """A run of three methods at three numbers of steps, `plus` more of all; `settings` are merged in."""

    def build(
        name: str = "a", plus: float = 0.0, seeds: tuple[int, ...] = (0, 1, 2), **settings: Any
    ) -> FinishedExperiment:
        contents = make(settings={"seeds": list(seeds), **settings})
        counts = {"udlm": (84, 245, 437), "random": (183, 351, 543), "pairflow": (352, 498, 662)}
        rows = metric_rows(counts, seeds=seeds)
        rows = rows.assign(value=rows.value + plus + rows.seed * (1 + plus) + rows.nfe * rows.seed % 3)
        dated = {"date": "2026-01-02", "commit": "a1b2c3d4e5"}
        return FinishedExperiment(name, contents.experiment, pd.DataFrame(rows), contents.timings, dated)

    return build
