"""Two moons by dimension: the charts, and who is ahead where, from metric rows with known differences."""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.paper.moons import compare_dimensions
from pairflow.artifacts import as_metrics
from pairflow.config.file import read
from pairflow.report.results import FinishedExperiment

SHIPPED = read(Path(__file__).parents[3] / "workflow_config.yaml").experiments
MEANS = {"condot": {1: 0.5, 8: 0.02}, "ot": {1: 0.2, 8: 0.02}, "pairflow": {1: 0.1, 8: 0.02}}


def finished(name: str) -> FinishedExperiment:
    """Three seeds whose values differ by a thousandth, in an order of its own for each method."""
    rows = [
        {"method": method, "nfe": nfe, "seed": seed, "value": mean + 1e-3 * np.sin(seed * 7 + len(method))}
        for method, means in MEANS.items()
        for nfe, mean in means.items()
        for seed in range(3)
    ]
    shared = {"metric": "chamfer", "trial": 0, "evaluation": "main", "samples": 2500, "reference": "train"}
    return FinishedExperiment(name, SHIPPED[name], as_metrics(pd.DataFrame(rows), **shared), pd.DataFrame())


def test_each_dimension_has_a_chart_and_a_sentence_against_each_baseline():
    page = compare_dimensions([finished("two_moons_d8"), finished("two_moons_d2")])
    assert list(page.charts) == ["d = 2: two_moons_d2", "d = 8: two_moons_d8"]
    assert [sentence.partition(":")[0] for sentence in page.sentences] == [
        f"two_moons_d{d} (d = {d}), pairflow against {baseline}"
        for d in (2, 8)
        for baseline in ("condot", "ot")
    ]
    for sentence in page.sentences:
        assert "ahead at NFE 1 (−0." in sentence
        assert "undecided at NFE 8 (" in sentence
        assert "behind" not in sentence


def test_without_two_moons_there_is_no_section():
    assert compare_dimensions([]) is None
