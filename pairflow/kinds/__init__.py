"""The kinds of data, a folder for each. What the workflow asks of a kind is in `kind`."""

from importlib import import_module
from pathlib import Path
from typing import Any

KINDS = ("molecules", "images", "text", "tokens", "vectors")  # the only list of them


def source_of(experiment: Any, folder: Path = Path()) -> Any:
    """The source that the data settings of an experiment name; relative paths are those below `folder`."""
    name = "data_sets" if experiment.modality in ("molecules", "images", "text") else "sources"
    module = import_module(f"pairflow.kinds.{experiment.modality}.{name}")
    return module.source_of(experiment.data, folder)
