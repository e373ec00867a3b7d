"""Settings of samples on demand (`pairflow sample --count`), of every kind of data."""

from typing import TYPE_CHECKING

from pydantic import create_model

from pairflow.kinds.registry import SETTINGS
from pairflow.settings.demand import CommonDemand

_OF_KINDS = [settings.demand for settings in SETTINGS if settings.demand is not CommonDemand]
if TYPE_CHECKING:
    DemandSettings = CommonDemand
else:
    DemandSettings = create_model(
        "DemandSettings",
        __base__=tuple(
            dict.fromkeys(settings.demand for settings in SETTINGS if settings.demand is not CommonDemand)
        ),
        __doc__=CommonDemand.__doc__,
        __module__=__name__,
    )
