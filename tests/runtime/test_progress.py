"""Bars move in a terminal and write lines into a file; that of a step that draws samples counts rows."""

import io
import sys

import numpy as np
import pytest
import torch
from torch import nn
from tqdm import tqdm

import pairflow
from pairflow.runtime import progress
from pairflow.runtime.progress import bar, joint_bar, network_bar


@pytest.fixture
def impatient(monkeypatch):
    """Bars that wait for no time to pass between two updates."""

    class Bar(tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "mininterval": 0})

    monkeypatch.setattr(progress, "tqdm", Bar)


@pytest.mark.parametrize("count", [40, 2000])
def test_a_log_file_gets_a_line_per_per_cent_without_carriage_returns(count, impatient, capfd):
    assert list(bar(range(count), total=count, desc="train")) == list(range(count))
    text = capfd.readouterr().err
    assert "\r" not in text
    lines = text.splitlines()
    assert [line[:11] for line in lines[:2]] == ["train:   0%", f"train: {100 // min(count, 100):3}%"]
    assert f"train: 100%| {count}/{count} [" in lines[-1]
    assert len(lines) == 1 + min(count, 100)


def test_bars_of_one_name_count_together(impatient, capfd):
    with joint_bar("pairing", total=40, unit="row"):
        for _ in range(4):
            with bar(total=10, desc="pairing", unit="row") as part:
                part.update(10)
        with bar(total=1, desc="other") as other:
            other.update(1)
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition(" [")[0] for line in lines if line.startswith("pairing")] == [
        *("pairing:   0%| 0/40", "pairing:  25%| 10/40", "pairing:  50%| 20/40"),
        *("pairing:  75%| 30/40", "pairing: 100%| 40/40"),
    ]
    assert lines[-2].startswith("other: 100%| 1/1") or lines[-1].startswith("other: 100%| 1/1")
    with joint_bar("pairing", total=40, quiet=True), bar(total=10, desc="pairing") as part:
        part.update(10)
    with bar(total=3, desc="pairing") as single:
        single.update(3)
    first, last = capfd.readouterr().err.splitlines()
    assert (first[:18], last[:18]) == ("pairing:   0%| 0/3", "pairing: 100%| 3/3")


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


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (2.0, True)])
def test_a_function_shows_a_bar_after_a_second_and_only_in_a_terminal(monkeypatch, seconds, shown):
    """A user's script writes no bar into its log, and no short call writes any."""
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    for moves in (True, False):
        stderr = io.StringIO()
        stderr.isatty = lambda moves=moves: moves
        monkeypatch.setattr(sys, "stderr", stderr)
        with progress.bars_of_a_function(), bar(total=2, desc="pairing") as rows:
            now[0] += seconds
            rows.update(1)
        assert ("pairing" in stderr.getvalue()) is (moves and shown)
    with bar(total=2, desc="pairing") as rows:
        rows.update(2)
    assert "pairing" in stderr.getvalue()


@pytest.mark.parametrize("name", ["pair", "transport_continuous"])
def test_functions_write_no_bar_into_a_log(name, capfd):
    tokens, options = np.eye(4, dtype=int), {}
    if name.endswith("continuous"):
        tokens = tokens.astype(float)
    else:
        options["vocabulary_size"] = 2
    getattr(pairflow, name)(tokens, **options)
    assert "%" not in capfd.readouterr().err
