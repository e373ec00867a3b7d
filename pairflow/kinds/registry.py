"""The list of the kinds of data, and of their classes of settings."""

from importlib import import_module

from pairflow.settings.fields import DataSettings

# The only list of kinds. The last one takes every source that no kind before it claims.
KINDS = ("images", "text", "tokens", "vectors", "molecules")


def _load(kind: str) -> type[DataSettings]:
    """Import the module `settings` of a kind, and return its subclass of DataSettings."""
    import_module(f"pairflow.kinds.{kind}.settings")
    return next(settings for settings in DataSettings.__subclasses__() if settings.kind == kind)


SETTINGS = tuple(map(_load, KINDS))
DataSettings.known = tuple(name for settings in SETTINGS for name in settings.names)
