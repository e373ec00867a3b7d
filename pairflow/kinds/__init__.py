"""The kinds of data, a folder for each. What the workflow asks of a kind is in `kind`."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairflow.config import Experiment
    from pairflow.config.fields import NewSettings
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.kinds.kind import Kind
    from pairflow.report.kind_page import KindPage

# The only list of them. The last one takes every source that no other claims.
KINDS = ("images", "text", "tokens", "vectors", "molecules")


def list_settings() -> list[Any]:
    """The class of the section `data` of each kind, which its module `settings` calls DATA."""
    return [load_settings(name).DATA for name in KINDS]


def load_settings(name: str) -> Any:
    """The module of the settings of the kind of that name."""
    return import_module(f"pairflow.kinds.{name}.settings")


def new_settings() -> type["NewSettings"]:
    """What `pairflow new` can be told: what is common to all kinds, and what each adds as its NEW."""
    from pydantic import create_model

    from pairflow.config.fields import NewSettings

    added = tuple(module.NEW for module in map(load_settings, KINDS) if hasattr(module, "NEW"))
    return create_model("NewSettings", __base__=added or NewSettings)


def kind_of(data: Any) -> "Kind":
    """The kind of an experiment's settings `data`."""
    return load_kind(data.kind)


def load_kind(name: str) -> "Kind":
    """The kind of that name."""
    return import_module(f"pairflow.kinds.{name}.kind").KIND


def page_of(experiment: "Experiment") -> "KindPage":
    """What pages ask about an experiment's kind of data: the kind's own page, or the plain one."""
    page = f"pairflow.kinds.{experiment.data.kind}.page"
    return import_module(f"{page}.page" if find_spec(page) else "pairflow.report.kind_page").PAGE


def kind_of_model(description: Mapping[str, Any], symbols: str) -> "Kind":
    """The kind of the rows that a model makes, by its model.json and by what its vocabulary.json calls them;
    either may be unknown, and is then empty."""
    return next(kind for kind in map(load_kind, KINDS) if kind.is_made_by(description, symbols))


def draft_experiment(request: "DraftRequest") -> "Draft":
    """The experiment to suggest on a user's own file, by the first kind that takes the file, from the end."""
    drafts = (load_kind(name).draft(request) for name in reversed(KINDS))
    return next(draft for draft in drafts if draft)


def source_of(data: Any, folder: Path = Path()) -> Any:
    """The source that the data settings of an experiment name; relative paths are those below `folder`."""
    return kind_of(data).source(data, folder)


import pairflow.config  # noqa: E402  # it imports the settings above, and has to be first, whoever asks first
