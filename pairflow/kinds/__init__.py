"""The kinds of data, each in its folder. `kind` has the interface that the workflow uses."""

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

# The only list of kinds. The last one takes every source that no kind before it claims.
KINDS = ("images", "text", "tokens", "vectors", "molecules")


def list_settings() -> list[Any]:
    """For each kind the class of the section `data`: DATA of its module `settings`."""
    return [load_settings(name).DATA for name in KINDS]


def load_settings(name: str) -> Any:
    """The module `settings` of a kind."""
    return import_module(f"pairflow.kinds.{name}.settings")


def new_settings() -> type["NewSettings"]:
    """The settings of `pairflow new`: common ones, and NEW of each kind's module `settings`."""
    from pydantic import create_model

    from pairflow.config.fields import NewSettings

    added = tuple(module.NEW for module in map(load_settings, KINDS) if hasattr(module, "NEW"))
    return create_model("NewSettings", __base__=added or NewSettings)


def kind_of(data: Any) -> "Kind":
    """The kind of an experiment's settings `data`."""
    return load_kind(data.kind)


def load_kind(name: str) -> "Kind":
    """The kind with that name."""
    return import_module(f"pairflow.kinds.{name}.kind").KIND


def page_of(experiment: "Experiment") -> "KindPage":
    """The page of an experiment's kind of data: from the kind's folder `page`, or the default."""
    page = f"pairflow.kinds.{experiment.data.kind}.page"
    return import_module(f"{page}.page" if find_spec(page) else "pairflow.report.kind_page").PAGE


def kind_of_model(description: Mapping[str, Any], symbols: str) -> "Kind":
    """The kind of the rows that a model makes, by the content of its model.json and by `kind` of its
    vocabulary.json; either may be unknown, and is then empty."""
    return next(kind for kind in map(load_kind, KINDS) if kind.is_made_by(description, symbols))


def draft_experiment(request: "DraftRequest") -> "Draft":
    """The experiment to suggest on a user's file, by the last of KINDS that takes the file."""
    drafts = (load_kind(name).draft(request) for name in reversed(KINDS))
    return next(draft for draft in drafts if draft)


def source_of(data: Any, folder: Path = Path()) -> Any:
    """The source that the section `data` of an experiment names; relative paths start at `folder`."""
    return kind_of(data).source(data, folder)


import pairflow.config  # noqa: E402  # imports this module's settings: importing `kinds` first also works
