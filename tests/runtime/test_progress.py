"""The bar of a step that draws samples counts rows, and leaves the network as it was."""

import torch
from torch import nn

from pairflow.runtime.progress import network_bar


def test_the_bar_counts_the_rows_that_the_network_sees(capfd):
    network, rows = nn.Linear(2, 3), torch.ones(5, 2)
    expected = network(rows)
    with network_bar(network, rows=10, calls=4, quiet=False):
        assert torch.equal(network(rows), expected)
        assert torch.equal(network(rows[:1]), expected[:1])
    network(rows)  # not counted
    assert "6.00/40.0" in capfd.readouterr().err


def test_a_quiet_bar_says_nothing(capfd):
    network = nn.Linear(2, 3)
    with network_bar(network, rows=1, calls=1, quiet=True):
        network(torch.ones(1, 2))
    assert capfd.readouterr() == ("", "")
