"""The section `data` of an experiment: one class of settings for each kind of data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Tag

from pairflow.config.fields import DataSettings
from pairflow.kinds import list_settings


def _claim(data: Any) -> str:
    """The tag of a data section: that of the kind that claims it, in brackets, unlike a key of it."""
    values = data if isinstance(data, Mapping) else getattr(data, "__dict__", {})
    return f"<{next(settings.kind for settings in list_settings() if settings.claims(values))}>"


if TYPE_CHECKING:
    Data = DataSettings
else:
    Data = Annotated[
        Union[tuple(Annotated[settings, Tag(f"<{settings.kind}>")] for settings in list_settings())],  # noqa: UP007
        Discriminator(_claim),
    ]
