"""Sources that are drawn independently of the data."""

from torch import Tensor

from pairflow.flow.couple.coupling import Coupling, Draw


class Independent(Coupling):
    """Each source goes to the data point that is drawn at its place."""

    def __call__(self, batches: Draw, x1: Tensor, sources: Draw, labels: Tensor | None = None) -> Draw:
        return batches


COUPLING = Independent
