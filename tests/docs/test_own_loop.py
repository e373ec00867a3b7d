"""The programs of docs/tokens.md: a network of one's own, with our pairs, losses and samplers."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs" / "tokens.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## In your own training loop")[2]
LOOP, LIGHTNING = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
DATA, _, TRAINING = LOOP.partition("optimiser =")
_, *SAMPLING = TRAINING.partition("noise =")
PROGRAMS = {"a loop": LOOP, "lightning": "".join([DATA, LIGHTNING, *SAMPLING])}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:::pytorch_lightning", "ignore:::lightning_fabric")
def test_the_program_learns_the_rule_of_its_rows(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Lightning writes checkpoints
    torch.manual_seed(0)
    made: dict[str, Any] = {}
    exec(PROGRAMS[program], made)
    rows = {tuple(row) for row in made["data"].tolist()}
    samples = [tuple(row) for row in made["samples"].tolist()]
    assert len(rows) == 24
    assert sum(sample in rows for sample in samples) > len(samples) / 2
    assert len(rows.intersection(samples)) > 20  # it has not learnt only some of them
