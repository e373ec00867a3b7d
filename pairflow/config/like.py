"""Experiments that are like another one: they name it, and give only the settings in which they differ."""

from collections.abc import Mapping
from pathlib import Path

from pairflow.arguments import nearest
from pairflow.errors import InputError
from pairflow.files import Json

LIKE = "like"
LONGEST = 30  # chain of experiments each of which is like the next
_CHOICES = ("name", "source")  # keys that decide which other keys a mapping has


def complete_likes(
    experiments: Mapping[str, object], known: Mapping[str, object], origin: str | Path
) -> Json:
    """Return the entries of `experiments`, those with the key `like` completed by the entry that it names.

    `known` are complete entries of other files. Raises InputError, which begins with `origin`, if there is no
    experiment of that name, or if the entries name each other in a circle.
    """
    entries = {**known, **experiments}

    def complete(name: str, chain: tuple[str, ...]) -> object:
        entry = entries[name]
        if not isinstance(entry, dict) or LIKE not in entry:
            return entry
        other, key = entry[LIKE], f"{origin}: experiments.{name}.{LIKE}"
        if not isinstance(other, str) or other not in entries:
            raise InputError(f"{key}: no experiment '{other}'{nearest(str(other), entries)}")
        if len(chain) == LONGEST:
            raise InputError(f"{key}: a circle, or a chain of more than {LONGEST} experiments")
        changes = {key: value for key, value in entry.items() if key != LIKE}
        return _merge(complete(other, (*chain, name)), changes)

    return {name: complete(name, ()) for name in experiments}


def _merge(settings: object, changes: object) -> object:
    """Settings with changes: mappings are merged, other values are replaced, and null removes a key."""
    if not (isinstance(settings, dict) and isinstance(changes, dict)):
        return changes
    if any(key in changes and changes[key] != settings.get(key) for key in _CHOICES):
        return changes
    merged = {**settings, **{key: _merge(settings.get(key), value) for key, value in changes.items()}}
    return {key: value for key, value in merged.items() if changes.get(key, ...) is not None}
