"""The experiment that a kind of data suggests to `pairflow new` for a user's own file."""

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairflow.data.source import DatasetSize
from pairflow.files import Json, escaped

if TYPE_CHECKING:
    import pandas as pd

Entry = Json
FEWEST, MOST = 100, 1_000_000  # iterations that are fitted to a time
NO_START = "none"  # instead of the name of a model to start from


class DraftRequest(NamedTuple):
    """What a user asks `pairflow new` for: the file, its path in the experiment (`source`), and the settings.

    `parent` is the folder of a model to start from, and `start` its path or name in the experiment, or
    NO_START to refuse one. The file `rejects` will list the rejected rows, and the file `unused` the rows
    whose field in the column of the condition is not used. `device` is "cpu" or "cuda", `quiet` hides
    progress bars, and `configuration` is the path of workflow_config.yaml. `taken_as` is what the user says
    that the file holds, such as "text" (`kinds.READINGS`), or None if the file is taken for what it looks
    like.
    """

    file: Path
    source: str
    settings: Any  # of the command `new` for a kind of data: a subclass of `NewSettings`
    parent: Path | None
    start: str
    rejects: Path
    unused: Path
    device: str
    quiet: bool
    configuration: Path
    taken_as: str | None = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A suggested experiment, and what to tell the user about its data.

    Attributes:
        experiment: the settings of the experiment.
        size: the numbers of rows, tokens per row and symbols of its data.
        content: the data in a sentence.
        table: the data in lines of numbers.
        rejected: the rows that are left out.
        unused: the rows whose field in the column of the condition is not used.
        advice: lines for the user about further rules that the data suggest.
        hours: the time that the experiment may take, or None to keep its number of iterations.
        most: the most iterations that are fitted to that time, or None.
        with_iterations: a function that makes the experiment with a given number of iterations.
        scratch: the same draft without a model to start from, if the user did not ask for that model.
    """

    experiment: Entry
    size: DatasetSize
    content: str
    table: str
    rejected: "pd.DataFrame"
    unused: "pd.DataFrame | None" = None
    advice: tuple[str, ...] = ()
    hours: float | None = None
    most: int | None = None
    with_iterations: Callable[[int], Entry] | None = None
    scratch: "Draft | None" = None

    def fit(self, seconds: Callable[[Entry], float]) -> Entry:
        """Return the experiment with the most iterations that fit into `hours`. The function `seconds` says
        how long an experiment takes.

        The number of iterations has two significant digits, and lies between FEWEST and `most`. Without hours
        the experiment stays as drafted.
        """
        make = self.with_iterations
        if self.hours is None or make is None:
            return self.experiment
        numbers = [digits * 10**power for power in range(1, 5) for digits in range(10, 100)]
        most = max(FEWEST, self.most or MOST)
        numbers = [number for number in numbers if FEWEST <= number <= most]
        fitting = bisect_right(numbers, 3600 * self.hours, key=lambda number: seconds(make(number)))
        return make(numbers[max(0, fitting - 1)])


def own_split(request: DraftRequest) -> Entry:
    """Return the user's own split, as keys of an experiment's section `data`; empty if there is none."""
    settings = request.settings
    held_out = settings.held_out and relative(Path(settings.held_out), request.configuration)
    keys = {"split_column": settings.split_column, "held_out": held_out}
    return {key: value for key, value in keys.items() if value}


def relative(file: Path, configuration: Path) -> str:
    """Return the path of the file relative to the configuration's folder; an absolute one stays absolute."""
    return str(file) if file.is_absolute() else os.path.relpath(file, configuration.parent)


def table_lines(title: str, lines: list[tuple[str, int, str]]) -> str:
    """Return the text of a table: a title, then lines of a label, a number and a remark."""
    texts = [f"  {label:<34}{number:>12,}  {escaped(remark)}".rstrip() for label, number, remark in lines]
    return "\n".join([escaped(title), *texts])
