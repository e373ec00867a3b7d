"""Dropout that does not depend on how a batch is split between passes and processes."""

from torch import Tensor, nn


class Dropout(nn.Dropout):
    """Dropout of some rows of a batch, with the mask that they would get in the whole batch.

    The mask is drawn for the whole batch, so that random numbers are the same, and then cut. `seen` holds the
    slice of rows and the size of the batch; it is None where the network gets the whole batch.
    """

    seen: tuple[slice, int] | None = None

    def forward(self, h: Tensor) -> Tensor:
        if self.seen is None or not self.training:
            return super().forward(h)
        rows, batch_size = self.seen
        mask = super().forward(h.new_ones(batch_size, *h.shape[1:]))  # 0 or 1 / (1 - p)
        return h * mask[rows]


def set_batch_slice(network: nn.Module, rows: slice, batch_size: int) -> None:
    """Tell the network's dropout which rows of a batch it gets next."""
    whole = rows == slice(0, batch_size)
    for module in network.modules():
        if isinstance(module, Dropout):
            module.seen = None if whole else (rows, batch_size)
