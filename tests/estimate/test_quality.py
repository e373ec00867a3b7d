"""What `new` says of the quality to expect: the numbers of docs/results.md and of the paper's tables."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairflow.config import Experiment, check
from pairflow.config.suggest import scale
from pairflow.data.source import DatasetSize
from pairflow.estimate.quality import _PRECEDENTS, describe
from pairflow.report.paper import printed

ROOT = Path(__file__).parents[2]
TABLES = pd.read_csv(Path(printed.__file__).with_name("tables.csv"))


def expected(length: int, device: str) -> str:
    entry = {"description": "x", "scale": "reduced", "data": {"source": "x.smi", "length": length}}
    entry |= scale(length, 54, 2759, device, compare=False)
    return describe(check(Experiment, entry, "x"), DatasetSize(2759, 145, 54, length))


def largest(dataset: str) -> float:
    """The paper's largest share of valid samples of its method, in per cent."""
    table = f"{dataset.removesuffix('250k')}_results_valid"
    values = TABLES[(TABLES.table == table) & (TABLES.method == "PairFlow")].value
    return values.max() / 10.24


@pytest.mark.parametrize(
    ("length", "device", "percent"),
    [
        (16, "cpu", ["74"]),
        (24, "cpu", ["29", f"{largest('qm9'):.0f}"]),
        (32, "cuda", [f"{largest('qm9'):.0f}"]),
        (200, "cuda", [f"{largest('zinc250k'):.0f}"]),
    ],
)
def test_the_most_similar_experiment_is_quoted(length, device, percent):
    text = expected(length, device)
    assert f"iterations on 2,759 molecules of up to {length} tokens" in text
    quoted = [word for word, unit in zip(text.split(), text.split()[1:], strict=False) if unit == "%"]
    assert quoted == percent


def test_the_small_networks_numbers_are_in_the_results():
    results = (ROOT / "docs/results.md").read_text()
    assert "756.0 ± 17.5" in results  # of 1,024: 74 %
    assert "300.0 ± 16.8" in results  # of 1,024: 29 %
    assert "0.8 % valid samples" in results


def test_a_small_transformer_is_no_paper_like_one():
    text = expected(72, "cpu")
    assert text.startswith("Quality: this trains a small transformer for ")
    assert f"{largest('zinc250k'):.0f} %" not in text


def test_the_small_transformers_numbers_are_in_a_record():
    """Of useful molecules at the best number of steps, each with the rows of the library in its words."""
    lines = [
        json.loads(line)
        for path in (ROOT / "benchmarks/records").glob("useful-molecules*.jsonl")
        for line in path.read_text().splitlines()
    ]
    for precedent in _PRECEDENTS["small transformer"]:
        shares = {
            f"{np.mean(values['useful_strict']) / line['samples']:.0%}".replace("%", " %")
            for line in lines
            if f"{line['training_rows']:,} molecules" in precedent.experiment
            for key, values in line.items()
            if key.startswith("nfe")
        }
        assert precedent.share in shares
