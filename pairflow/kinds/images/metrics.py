"""The metrics of images."""

from functools import partial

from pairflow.metrics.metric import Metric
from pairflow.metrics.paths import PATH_GROUP, PATHS

_by_features = partial(Metric, against="to the {} images", real="real images")
_nearest = partial(Metric, against="to the nearest {} image", real="real images", group="neighbours")
METRICS = {
    "fid": _by_features("FID", "lowest", "FID", log=True),
    "fd": _by_features("FD", "lowest", "FD", log=True),
    "is": _by_features("IS", "highest"),
    "kid": _by_features("KID", "lowest", log=True, group="kernel", signed=True),
    "kd": _by_features("KD", "lowest", log=True, group="kernel", signed=True),
    "nn_l2": _nearest("L2", log=True, features=False),
    "nn_cosine": _nearest("cosine"),
    "nn_copies": _nearest("share of copies", against="of {} images", chart=False, features=False),
    **PATHS,
}
GROUPS = {"kernel": "Kernel distances", "neighbours": "Distance to the nearest images", **PATH_GROUP}
