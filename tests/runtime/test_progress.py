"""Bars move in a terminal and write lines into a file; that of a step that draws samples counts rows."""

import io
import sys

import pytest
import torch
from torch import nn
from tqdm import tqdm

from pairflow.runtime import progress
from pairflow.runtime.progress import bar, network_bar


@pytest.fixture
def impatient(monkeypatch):
    """Bars that wait for no time to pass between two updates."""

    class Bar(tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "mininterval": 0})

    monkeypatch.setattr(progress, "tqdm", Bar)


@pytest.mark.parametrize("count", [40, 100, 2000])
def test_a_log_file_gets_a_line_per_per_cent_without_carriage_returns(count, impatient, capfd):
    assert list(bar(range(count), total=count, desc="train")) == list(range(count))
    text = capfd.readouterr().err
    assert "\r" not in text
    lines = text.splitlines()
    assert [line[:11] for line in lines[:2]] == ["train:   0%", f"train: {100 // min(count, 100):3}%"]
    assert f"train: 100%| {count}/{count} [" in lines[-1]
    assert len(lines) == 1 + min(count, 100)


def test_a_terminal_gets_one_line_that_moves(impatient, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    list(bar(range(50), total=50))
    assert terminal.getvalue().count("\r") > 40
    assert terminal.getvalue().count("\n") == 1


def test_without_a_total_a_line_in_ten_seconds(capfd):
    with bar(total=None, desc="read", unit="B") as count:
        for _ in range(1000):
            count.update(7)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "7000B" in lines[-1]


def test_the_bar_counts_samples_and_moves_with_each_call_of_the_network(capfd):
    network, rows = nn.Linear(2, 3), torch.ones(5, 2)
    expected = network(rows)
    with network_bar(network, rows=10, calls=4, quiet=False):
        assert torch.equal(network(rows), expected)
        assert torch.equal(network(rows[:1]), expected[:1])
    network(rows)  # not counted
    assert "1.50/10.0" in capfd.readouterr().err  # six of forty calls


def test_a_quiet_bar_says_nothing(capfd):
    network = nn.Linear(2, 3)
    with network_bar(network, rows=1, calls=1, quiet=True):
        network(torch.ones(1, 2))
    assert capfd.readouterr() == ("", "")
