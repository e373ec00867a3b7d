"""The program of docs/tokens.md: a network of one's own, with our pairs, losses and samplers."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).parents[2] / "docs" / "tokens.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## In your own training loop")[2]
[PROGRAM] = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


def test_the_program_learns_the_rule_of_its_rows():
    torch.manual_seed(0)
    made: dict = {}
    exec(PROGRAM, made)
    rows = {tuple(row) for row in made["data"].tolist()}
    samples = [tuple(row) for row in made["samples"].tolist()]
    assert len(rows) == 24
    assert sum(sample in rows for sample in samples) > len(samples) / 2
    assert len(rows.intersection(samples)) > 20  # it has not learnt only some of them
