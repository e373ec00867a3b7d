"""The kinds of data, each in a folder. All implement one interface, `kind.Kind`, which the workflow calls."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflow.errors import InputError
from pairflow.kinds.registry import KINDS
from pairflow.settings.fields import DataSettings, NewSettings

if TYPE_CHECKING:
    from pairflow.config import Experiment
    from pairflow.data.draft import Draft, DraftRequest
    from pairflow.data.source import DataSource
    from pairflow.kinds.kind import AnyKind
    from pairflow.report.kind_page import KindPage

# What `pairflow new` may take a file for; rows are text in which each line is a row.
READINGS = ("molecules", "text", "rows", "table")


def new_settings() -> type[NewSettings]:
    """Create the class of the settings of `pairflow new`: the common ones, and those that kinds of data
    add."""
    from pydantic import create_model

    added = tuple(kind.drafting.settings for kind in map(load_kind, KINDS) if kind.drafting)
    return create_model("NewSettings", __base__=added or NewSettings)


def kind_of(data: DataSettings) -> "AnyKind":
    """Return the kind of data that the section `data` of an experiment describes."""
    return load_kind(data.kind)


def load_kind(name: str) -> "AnyKind":
    """Return the kind called `name`, one of KINDS."""
    return import_module(f"pairflow.kinds.{name}.kind").KIND


def on_demand_kinds() -> "list[AnyKind]":
    """Return the kinds that `sample --count` supports."""
    return [kind for kind in map(load_kind, KINDS) if kind.delivery]


def page_of(experiment: "Experiment") -> "KindPage":
    """Return the object that says what report pages show for the experiment's kind of data."""
    from pairflow.report.kind_page import KindPage

    return kind_of(experiment.data).page() or KindPage()


def kind_of_model(description: Mapping[str, object], symbols: str) -> "AnyKind":
    """Return the kind of data whose rows a model makes.

    Args:
        description: the content of the model's model.json; empty if unknown.
        symbols: the entry `kind` of the model's vocabulary.json; empty if unknown.
    """
    return next(kind for kind in map(load_kind, KINDS) if kind.is_made_by(description, symbols))


def draft_experiment(request: "DraftRequest") -> "Draft":
    """Suggest an experiment on the user's file `request.file`. KINDS are asked from the last to the first,
    and the first that recognises the file makes the draft. Raises InputError if no kind does."""
    from pairflow.data.tabular import refuse_spreadsheet

    refuse_spreadsheet(request.file)
    for kind in map(load_kind, reversed(KINDS)):
        if kind.drafting and (draft := kind.drafting.draft(request)):
            return draft
    raise InputError(
        f"{request.file}: unknown kind of file; expected a name that ends in .smi, .sdf, .csv, .txt, .fasta "
        "or the like; for any other file, say with --as what it holds"
    )


def source_of(data: DataSettings, folder: Path = Path()) -> "DataSource":
    """Return the source that the section `data` of an experiment names; relative paths start at `folder`."""
    return kind_of(data).source(data, folder)
