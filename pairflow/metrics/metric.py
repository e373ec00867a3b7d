"""How pages name, order and draw a metric. Each kind of data lists its metrics."""

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Metric:
    """How a page names, orders and draws a metric, and which of two values is better.

    Attributes:
        label: its name on pages.
        best: "highest", "lowest" or "".
        leads_as: its name in sentences, if it may decide which model of an experiment is best: the first such
            metric with values does.
        against: words for its reference (training or test rows), if it has one.
        real: words for the real rows on which it is also measured, for comparison.
        log: whether charts have a logarithmic axis.
        chart: whether it has a chart.
        counted: whether it is a number of samples, printed with one decimal.
        group: the group of tables that shows it (see `DataSettings.groups`); empty for the main metrics.
        features: whether it depends on the feature extractor of its rows.
        digits: the least number of decimals.
        compared: whether the reference or the extractor of its rows matters.
        signed: whether it may be negative.
    """

    label: str
    best: str = ""
    leads_as: str = ""
    against: str = ""
    real: str = "real rows"
    log: bool = False
    chart: bool = True
    counted: bool = False
    group: str = ""
    features: bool = True
    digits: int = 1
    compared: bool = True
    signed: bool = False

    @property
    def leading_share(self) -> bool:
        """Whether models are chosen by it, and it is a share of the samples, such as that of valid ones."""
        return self.counted and bool(self.leads_as)


HELD_OUT = "held_out"  # the metric row of real data with the number of rows that were measured

# Metrics of the trajectories of a continuous flow.
_path = partial(Metric, real="held-out data", digits=3, group="paths")
PATHS = {"path_energy": _path("path energy"), "straightness": _path("deviation from straight paths")}
PATH_GROUP = {"paths": "Paths from source to sample"}
