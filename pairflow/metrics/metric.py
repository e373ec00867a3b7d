"""How pages name, order and draw a metric; the lists of metrics are those of the kinds of data."""

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Metric:
    """How a page names, orders and draws a metric, and which of two values it calls the better one.

    `best` is `highest`, `lowest` or empty. An experiment is judged by the first metric with values and a
    `leads_as`, which names it in a sentence. `against` words the reference, training or test, where a metric
    has one, and `real` is what a floor is measured on. `counted` metrics are numbers of samples, printed with
    one decimal. `group` is a group of tables of the kind, empty for the main metrics. `digits` is the least
    number of decimals. `features`: the metric depends on the extractor of its rows. `compared`: its rows have
    a reference or an extractor that matters. `signed`: a distance that may be negative.
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


# Of the paths that samples of a continuous flow take from their sources.
_path = partial(Metric, real="held-out data", digits=3, group="paths")
PATHS = {"path_energy": _path("path energy"), "straightness": _path("deviation from straight paths")}
PATH_GROUP = {"paths": "Paths from source to sample"}
