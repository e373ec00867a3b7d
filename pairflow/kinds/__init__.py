"""The kinds of data, each in a folder. All implement one interface, `kind.Kind`, which the workflow calls."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.errors import InputError
from pairflow.kinds.registry import KINDS
from pairflow.settings.fields import DataSettings

if TYPE_CHECKING:
    from pairflow.config import Experiment
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.kinds.kind import Kind, OnDemandKind
    from pairflow.report.kind_page import KindPage
    from pairflow.settings.fields import NewSettings

# What `pairflow new` may take a file for; rows are text in which each line is a row.
READINGS = ("molecules", "text", "rows", "table")


def new_settings() -> type["NewSettings"]:
    """Make the settings class of `pairflow new`: common settings, and what kinds add (NEW in `settings`)."""
    from pydantic import create_model

    from pairflow.settings.fields import NewSettings

    modules = [import_module(f"pairflow.kinds.{name}.settings") for name in KINDS]
    added = tuple(module.NEW for module in modules if hasattr(module, "NEW"))
    return create_model("NewSettings", __base__=added or NewSettings)


def kind_of(data: DataSettings) -> "Kind":
    """Return the kind of data that the section `data` of an experiment describes."""
    return load_kind(data.kind)


def load_kind(name: str) -> "Kind":
    """Return the kind called `name`, one of KINDS."""
    return import_module(f"pairflow.kinds.{name}.kind").KIND


def on_demand_kinds() -> "list[OnDemandKind]":
    """Return the kinds that `sample --count` supports."""
    from pairflow.kinds.kind import OnDemandKind

    return [kind for kind in map(load_kind, KINDS) if isinstance(kind, OnDemandKind)]


def page_of(experiment: "Experiment") -> "KindPage":
    """Return what report pages show for the experiment's kind of data: the `PAGE` of the kind's own package
    `page`, or that of all kinds without one."""
    page = f"pairflow.kinds.{experiment.data.kind}.page"
    return import_module(f"{page}.page" if find_spec(page) else "pairflow.report.kind_page").PAGE


def kind_of_model(description: Mapping[str, Any], symbols: str) -> "Kind":
    """Return the kind of rows that a model makes.

    Args:
        description: the content of its model.json; empty if unknown.
        symbols: the entry `kind` of its vocabulary.json; empty if unknown.
    """
    return next(kind for kind in map(load_kind, KINDS) if kind.is_made_by(description, symbols))


def draft_experiment(request: "DraftRequest") -> "Draft":
    """Suggest an experiment on a user's file, by the last of KINDS that recognises it."""
    from pairflow.data.tabular import refuse_spreadsheet

    refuse_spreadsheet(request.file)
    drafts = (load_kind(name).draft(request) for name in reversed(KINDS))
    if draft := next(filter(None, drafts), None):
        return draft
    raise InputError(
        f"{request.file}: unknown kind of file; expected a name that ends in .smi, .sdf, .csv, .txt, .fasta "
        "or the like; for any other file, say with --as what it holds"
    )


def source_of(data: DataSettings, folder: Path = Path()) -> Any:
    """Return the source that the section `data` of an experiment names; relative paths start at `folder`."""
    return kind_of(data).source(data, folder)
