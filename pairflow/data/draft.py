"""The experiment that a kind of data suggests to `pairflow new` for a user's own file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairflow.config import Experiment
from pairflow.data.source import DatasetSize

if TYPE_CHECKING:
    import pandas as pd

Entry = dict[str, Any]


class DraftRequest(NamedTuple):
    """What a user asks for: the file, its path in the experiment (`source`), and the settings.

    `parent` is the folder of a model to start from and `start` its name in the experiment; `rejects` is the
    file that will list the rejected rows, and `device` is cpu or cuda.
    """

    file: Path
    source: str
    settings: Any
    parent: Path | None
    start: str
    rejects: Path
    device: str
    quiet: bool


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An experiment, and a description of its data: `content` in a sentence, `table` line by line.

    `rejected` lists the rows that are left out, and `advice` are further rules that the data suggest. If
    `hours` is given, the training is fitted to it: `with_iterations` makes the experiment with that number of
    iterations. `quality` says in words what quality to expect of an experiment.
    """

    experiment: Entry
    size: DatasetSize
    content: str
    table: str
    rejected: "pd.DataFrame"
    advice: tuple[str, ...] = ()
    hours: float | None = None
    with_iterations: Callable[[int], Entry] | None = None
    quality: Callable[[Experiment], str] | None = None


def table_lines(title: str, lines: list[tuple[str, int, str]]) -> str:
    """A title, and lines of a label, a number and a remark."""
    return "\n".join(
        [title, *(f"  {label:<34}{number:>12,}  {remark}".rstrip() for label, number, remark in lines)]
    )
