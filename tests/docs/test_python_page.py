"""The programs of docs/python.md run: with few iterations, and the own training loops as they are."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

TEXT = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
PAGE, SECTION = TEXT.split("## In your own training loop")
FIRST, *PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LOOP, LIGHTNING, FLOW_MATCHING = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
ROWS = FIRST.partition("model =")[0] + "import torch\nfrom torch import nn\n"
NETWORK, _, TRAINING = LOOP.partition("optimiser =")
_, *SAMPLING = TRAINING.partition("noise =")
LOOPS = {"a loop": LOOP, "lightning": "".join([NETWORK, LIGHTNING, *SAMPLING])}


def test_the_programs_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {"__name__": "page"}
    for program in (FIRST, *PROGRAMS):
        exec(re.sub(r"(iterations\"?[=:] ?)\d+", r"\g<1>20", program), made)
    assert made["rows"].shape == (100, 12)
    assert "Recurrent" in repr(type(made["model"].network))
    assert (tmp_path / "my_model/model.safetensors").exists()


@pytest.mark.parametrize("program", LOOPS)
@pytest.mark.filterwarnings("ignore:::pytorch_lightning", "ignore:::lightning_fabric")
def test_the_program_learns_the_rule_of_its_rows(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Lightning writes checkpoints
    torch.manual_seed(0)
    made: dict[str, Any] = {}
    exec(ROWS + LOOPS[program], made)
    rows = {tuple(row) for row in made["tokens"].tolist()}
    samples = [tuple(row) for row in made["samples"].tolist()]
    assert len(rows) == 24
    assert sum(sample in rows for sample in samples) > len(samples) / 2
    assert len(rows.intersection(samples)) > 20  # it has not learnt only some of them


def test_flow_matching_mixes_our_pairs():
    pytest.importorskip("flow_matching")
    made: dict[str, Any] = {}
    exec(ROWS + NETWORK + FLOW_MATCHING, made)
    sample, x_0, x_1 = made["sample"], made["x_0"], made["x_1"]
    pairs = {(*x0.tolist(), *x1.tolist()) for x0, x1 in made["pairs"]}
    assert {tuple(row) for row in torch.cat([x_0, x_1], dim=1).tolist()} <= pairs
    assert ((sample.x_t == x_0) | (sample.x_t == x_1)).all()
    assert 0 < (sample.x_t == x_1).float().mean() < 1
