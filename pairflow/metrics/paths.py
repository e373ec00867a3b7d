"""The metrics of the paths that samples of a continuous flow take from their sources."""

from pairflow.metrics.metric import Metric

_SHARED = {"real": "held-out data", "digits": 3, "group": "paths"}
PATHS = {
    "path_energy": Metric("path energy", **_SHARED),
    "straightness": Metric("deviation from straight paths", **_SHARED),
}
PATH_GROUP = {"paths": "Paths from source to sample"}
