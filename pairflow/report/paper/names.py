"""What the paper's tables, metrics and data sets are called on the page, and notes on them: `names.json`."""

import json
from pathlib import Path

from pairflow.report.paper.printed import DATASETS

_NAMES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
TITLES: dict[str, str] = _NAMES["titles"]
METRICS: dict[str, str] = _NAMES["metrics"]
NOTES: dict[str, str] = _NAMES["notes"]  # by metric
BY_DATASET = ("appendix_forward_velocity_coverage", "computation_cost_table")  # tables with a row for each


def name_dataset(dataset: str) -> str:
    return DATASETS.get(dataset) or _NAMES["datasets"].get(dataset, dataset)
