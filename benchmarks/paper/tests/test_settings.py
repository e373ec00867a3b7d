"""Which experiments the page on the paper's tables depends on."""

from pathlib import Path

from benchmarks.paper.settings import choose_experiments
from pairflow.config.file import read

REPOSITORY = Path(__file__).parents[3]


def test_the_papers_page_depends_only_on_experiments_on_its_data():
    named = choose_experiments(read(REPOSITORY / "workflow_config.yaml").experiments).experiments
    assert {"qm9", "qm9_small", "zinc250k", "cifar10"} <= set(named)
    assert not {"demo", "digits"} & set(named)
