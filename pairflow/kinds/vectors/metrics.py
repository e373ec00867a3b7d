"""The metrics of vectors."""

from functools import partial

from pairflow.metrics.metric import Metric
from pairflow.metrics.paths import PATH_GROUP, PATHS

_distance = partial(Metric, best="lowest", against="to training data", real="held-out data", log=True)
METRICS = {
    "chamfer": _distance("Chamfer distance", headline="the Chamfer distance", digits=4),
    "chamfer_all": _distance("Chamfer distance, all coordinates", digits=4),
    "w2": _distance("2-Wasserstein distance", digits=3),
    **PATHS,
}
GROUPS = PATH_GROUP
