"""The metrics of the paths that samples of a continuous flow take from their sources."""

from functools import partial

from pairflow.metrics.metric import Metric

_path = partial(Metric, real="held-out data", digits=3, group="paths")
PATHS = {"path_energy": _path("path energy"), "straightness": _path("deviation from straight paths")}
PATH_GROUP = {"paths": "Paths from source to sample"}
