"""Dropout that does not depend on how a batch is split between passes and processes."""

from torch import nn


class Dropout(nn.Dropout):
    """Dropout of some rows of a batch: they lose what they would lose if the network saw all of it.

    The mask is drawn for the whole batch, so that random numbers are the same, and cut. `seen` is the rows,
    a slice, and the size of the batch; None where the network sees all of it.
    """

    seen: tuple[slice, int] | None = None

    def forward(self, h):
        if self.seen is None or not self.training:
            return super().forward(h)
        rows, batch_size = self.seen
        mask = super().forward(h.new_ones(batch_size, *h.shape[1:]))  # 0 or 1 / (1 - p)
        return h * mask[rows]


def sees(network: nn.Module, rows: slice, batch_size: int) -> None:
    """Tell the network's dropout which rows of a batch come next."""
    whole = rows == slice(0, batch_size)
    for module in network.modules():
        if isinstance(module, Dropout):
            module.seen = None if whole else (rows, batch_size)
