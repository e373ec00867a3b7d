"""Sources that are drawn independently of the data."""

from torch import Tensor

from pairflow.flow.couple.coupling import Coupling, Draw


class Independent(Coupling):
    """Source b of a batch is paired with data row b of the batch: both are drawn independently."""

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        return batches
