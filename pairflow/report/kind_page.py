"""What pages show for a kind of data: a class with defaults, which the kinds' `page` folders override."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from pairflow import rng
from pairflow.artifacts import Metadata, read_table, token_array
from pairflow.config import Experiment
from pairflow.pixels import encode, tile
from pairflow.plan import paths
from pairflow.report.contents import Contents
from pairflow.report.downloads import Sheet
from pairflow.report.findings import (
    Box,
    Flaw,
    Headline,
    Measure,
    MethodLine,
    Run,
    measure_bounds,
    measure_grid,
)
from pairflow.report.grid import REAL, Grid
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import format_percent, join_steps, pluralise

Samples = Mapping[str, Mapping[int, np.ndarray]]  # method -> NFE -> rows (B, N)
Flawed = Mapping[MethodLine, Sequence[Flaw]]  # the methods with flaws of one kind, at their best NFE
TIMES = (0.75, 0.5, 0.25)  # times of the states between both ends of a pair
_LONGEST = 400  # most numbers of a row that are shown
_ACROSS = 2  # pictures per line


@dataclass(frozen=True)
class Details:
    """What the section on an evaluation shows only for one kind of data.

    `shown` has the values for the macros of the kind's section. `sheets` are further tables to
    download.
    """

    shown: Mapping[str, object] = field(default_factory=dict)
    sheets: Sequence[Sheet] = ()


class KindPage:
    """What the pages, the verdicts and the last lines of a run show for a kind of data.

    Attributes:
        things: what samples are called.
        section: the template file with the kind's macros, relative to pairflow/ or pairflow/report/.
        shown: the number of samples on the page per method and number of steps; None for all.
        bounded: whether trainings log a bound on the likelihood of held-out rows.
        controls: names of controls that need no model, which metric rows have as methods.
        counted: further tables of the data, each with the term for its number of rows.
        copies: the metric for the share of samples that equal training rows.
        copies_expected: whether the data may contain nearly everything of their kind.
    """

    things: ClassVar[str] = "rows"
    section: ClassVar[str] = "experiment/plain.html"
    shown: ClassVar[int | None] = 8
    bounded: ClassVar[bool] = True
    controls: ClassVar[Sequence[str]] = ()
    counted: ClassVar[Mapping[str, str]] = {}
    copies: ClassVar[str] = "copies"
    copies_expected: ClassVar[bool] = True

    # Asked by what reads the results

    def read(self, root: Path, experiment: Experiment, samples: Samples) -> dict[str, object]:
        """Read the values that only pages of this kind of data show, as a dict for the page's template.

        The dict has at least `rows`: some rows as text, of the training data (under `data`) and of the
        samples of each method. A kind that draws rows adds `pictures`, the same rows as images (B, H, W, C)
        uint8. `root` is the folder of the experiment's results, and `samples` are {method: {NFE: rows (B,
        N)}} of the first trial.
        """
        named = name_rows(root, samples, self.shown)
        drawn = {name: self.to_pictures(rows) for name, rows in named.items()}
        return {
            "rows": {name: [*map(self.spell, rows)] for name, rows in named.items()},
            "pictures": {name: pictures for name, pictures in drawn.items() if pictures is not None},
        }

    def spell(self, row: np.ndarray) -> str:
        """Write a row (N,) as a line of numbers, shortened if it is long."""
        numbers = row[:_LONGEST].tolist()
        texts = (f"{number:.4g}" if isinstance(number, float) else f"{number}" for number in numbers)
        return " ".join(texts) + " …" * (len(row) > _LONGEST)

    def to_pictures(self, rows: np.ndarray) -> np.ndarray | None:
        """Turn rows (B, N) into pictures (B, H, W, C) uint8; None if the kind draws none."""
        return None

    def prepare_bounds(self, root: Path, held_out: np.ndarray) -> Callable[[float], Mapping[str, float]]:
        """Return a function from the bound on held-out rows' NLL (nats per token) to derived metrics, by
        name. `root` is the experiment's folder, and `held_out` (V, N) the rows."""
        return lambda nll: {}

    # Asked by the head of the page and by the last lines of a run

    def headline_columns(self, results: FinishedExperiment, leading: Grid) -> dict[str, Measure]:
        """Make the columns of the headline's table, by name: the metric of `leading`, which ranks the
        methods, main metrics, copies and bounds."""
        measures = {leading.metric: measure_grid(leading)}
        for grid in results.grids[leading.evaluation]:
            if grid.metric == self.copies:
                real = format_percent(grid.floor.mean) if grid.floor else "–"
                measures["copies"] = Measure("copies", grid.metric, grid.means, real)
            elif not grid.about.group:
                measures.setdefault(grid.metric, measure_grid(grid))
        return measures | measure_bounds(results, leading)

    def write_headline(
        self, leading: Grid, best: MethodLine, measures: Mapping[str, Measure], results: FinishedExperiment
    ) -> str:
        """Write the headline's sentence: how good the best method is, and how good real data are.

        `leading` is the table that ranks the methods; its `Metric` has the words. `measures` are the columns
        of the headline's table.
        """
        first, things = measures[leading.metric], leading.about.real
        real = f"it is {first.real}" if leading.floor else "it was not measured"
        measure = f"{leading.about.leads_as} {leading.qualifier}".rstrip()
        named = name_best(leading, best).rstrip(",")
        return f"For {named}, {measure} is {first.text(best)}; for {things} {real}."

    def sample_command(self, root: Path, experiment: Experiment) -> str:
        """Return the command that draws samples from the best model in `root`; empty if the kind has none."""
        return ""

    # Asked by what warns of bad samples

    def find_flaws(
        self, results: FinishedExperiment, measured: Sequence[Grid], evaluation: str
    ) -> Iterator[tuple[Run, Flaw]]:
        """Yield ((method, NFE), flaw) for each flaw of an evaluation's samples; `measured` are the
        evaluation's tables."""
        rows = results.metrics[results.metrics.metric == self.copies]
        real = rows.value[rows.method == REAL].mean()
        shares = find_means(measured, self.copies)
        yield from find_copies(shares, f"most of its samples equal training {self.things}", real)

    def write_boxes(
        self, flawed: Mapping[str, Flawed], headline: Headline, results: FinishedExperiment
    ) -> Iterator[Box]:
        """Yield the boxes with which a page warns about samples. `flawed` has, for each `Flaw.kind`, the
        methods with such a flaw."""
        if copying := flawed.get("copies"):
            text = f"samples equal training {self.things}: {headline.name_shares(copying)}"
            advice = EXPECTED_COPIES if self.copies_expected else _UNEXPECTED_COPIES
            severe = not self.copies_expected
            yield Box("Mostly copies.", f"More than half of the {text}. {advice}", severe)

    # Asked by the page

    def make_details(
        self, contents: Contents, evaluation: str, tables: Sequence[Grid], prefix: str
    ) -> Details:
        """Make what this kind adds to an evaluation; `prefix` makes the names of its drawings unique."""
        return Details()

    def draw(self, contents: Contents) -> dict[str, object]:
        """Draw the figures for the macros of `section`, in which they are called `drawn`."""
        pictures = contents.part.get("pictures", {}).items()
        tiles = {name: tile(images, _ACROSS) for name, images in pictures}
        return {"pictures": {name: encode(image, f"The rows of {name}") for name, image in tiles.items()}}


_UNEXPECTED_COPIES = "Use more data, fewer iterations or a smaller network."
EXPECTED_COPIES = (
    "That is expected if the data contain nearly everything of their kind. Otherwise use more data, fewer "
    "iterations or a smaller network."
)
_COPIES = 0.5


def name_best(leading: Grid, best: MethodLine, article: str = "the") -> str:
    """Write `the best method, pairflow at 8 sampling steps,`, or only its name if there is no other."""
    name = f"{best.method} at {join_steps([best.nfe])}"
    return f"{article} best method, {name}," if len({method for method, _ in leading.means}) > 1 else name


def find_copies(shares: Mapping[Run, float], text: str, real: float = np.nan) -> Iterator[tuple[Run, Flaw]]:
    """Yield a flaw, with this `text`, for each run whose share of copies is more than half, and more than the
    share `real` of real data (NaN if unknown)."""
    for run, share in shares.items():
        if share > max(_COPIES, real):
            yield run, Flaw("copies", text, share)


def find_means(measured: Sequence[Grid], metric: str) -> Mapping[Run, float]:
    """Return the means of a metric by (method, NFE); empty if it was not measured."""
    return {grid.metric: grid.means for grid in measured}.get(metric, {})


def choose_examples(rows: int, number: int, seed: int) -> np.ndarray:
    """Return the row numbers of `number` random rows out of `rows` training rows."""
    return rng.random_order(rng.stream_seed(seed, "examples"), rows)[:number]


def read_pairs(root: Path, seed: int, coupling: str, number: int) -> tuple[np.ndarray, np.ndarray, Metadata]:
    """Read sources x0 and data x1 (B, N) of random rows, the same for every coupling, and the metadata."""
    table, metadata = read_table(paths.pairs(root, seed, coupling), "pairs", "vector pairs")
    rows = rng.random_order(seed, len(table))[:number]
    x0, x1 = (token_array(table[name])[rows] for name in ("x0", "x1"))
    return x0, x1, metadata


def draw_pairs(root: Path, seed: int, coupling: str, number: int) -> tuple[np.ndarray, ...]:
    """Return data x1 (B, N), states at `TIMES` (B, S, N) and sources x0 (B, N) of some random pairs."""
    x0, x1, metadata = read_pairs(root, seed, coupling, number)
    if metadata.kind == "vector pairs":
        return x1, np.stack([(1 - t) * x0 + t * x1 for t in TIMES], axis=1), x0
    return x1, draw_between(x0, x1, seed, TIMES), x0


def draw_between(x0: np.ndarray, x1: np.ndarray, seed: int, times: tuple[float, ...]) -> np.ndarray:
    """Draw states (B, S, N) at `times` between token rows x0 and x1 (B, N): x1 with probability t, else x0.

    A position that holds x1 at one time holds it at all later times.
    """
    uniforms, _ = rng.draws(rng.stream_seed(seed, "between"), np.arange(len(x1)), 0, x1.shape[1])
    return np.stack([np.where(uniforms < time, x1, x0) for time in times], axis=1)


def name_rows(root: Path, samples: Samples, shown: int | None) -> dict[str, np.ndarray]:
    """Return the first `shown` training rows (named `data`), and the first samples of each method and NFE
    (named as `udlm, 4 steps`): a dict to rows (B, N). None shows all."""
    table, _ = read_table(paths.data(root, "train.parquet"), "tokens", "vectors")
    named = {"data": token_array(table[name_column(table)])} | {
        f"{method}, {pluralise(nfe, 'step')}": rows
        for method, by_nfe in samples.items()
        for nfe, rows in sorted(by_nfe.items())
    }
    return {name: rows[:shown] for name, rows in named.items()}


def name_column(table: pa.Table) -> str:
    """Return the name of the column with a table's rows: `values` (of numbers) or `tokens`."""
    return "values" if "values" in table.column_names else "tokens"
