"""Which experiments the page on the paper's tables depends on."""

from pathlib import Path

import yaml

from benchmarks.paper.settings import choose_experiments
from pairflow.config import Configuration, check

REPOSITORY = Path(__file__).parents[3]


def test_the_papers_page_depends_only_on_experiments_on_its_data():
    shipped = yaml.safe_load((REPOSITORY / "workflow_config.yaml").read_text())
    named = choose_experiments(check(Configuration, shipped, "x").experiments).experiments
    assert {"qm9", "qm9_small", "zinc250k", "cifar10"} <= set(named)
    assert not {"demo", "digits"} & set(named)
