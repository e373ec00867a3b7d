"""The counterpart of the figure on N-fold two moons: Chamfer distances by dimension, and who is ahead."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pairflow.report import figures
from pairflow.report.drawing import Legend, Picture, legend
from pairflow.report.grid import Grid
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import Difference, adjust, difference
from pairflow.report.words import OURS, baselines, join_words

Run = tuple[int, str]  # d, the experiment


@dataclass(frozen=True)
class MoonsPage:
    """Charts by title, the legend of their methods, and a sentence for each baseline of each experiment."""

    charts: dict[str, Picture]
    legend: Legend
    sentences: list[str]


def compare_dimensions(runs: Iterable[FinishedExperiment]) -> MoonsPage | None:
    """The finished experiments on two moons, by dimension; None without any."""
    grids: dict[Run, Grid] = {}
    experiments = {run.name: run for run in runs if run.experiment.data.source == "two_moons"}
    for run in experiments.values():
        if (grid := run.leading) is not None:
            grids[getattr(run.experiment.data, "dims", 0), run.name] = grid
    if not grids:
        return None
    grids = dict(sorted(grids.items()))
    methods = list(dict.fromkeys(name for grid in grids.values() for name, _ in grid.values))
    return MoonsPage(
        {f"d = {d}: {name}": _chart(grid, methods, f"moons-{name}") for (d, name), grid in grids.items()},
        legend(methods, "moons", figures.contrast(methods)),
        _judge(grids, next(iter(experiments.values()))),
    )


def _chart(grid: Grid, methods: list[str], name: str) -> Picture:
    return figures.quality(replace(grid, methods=methods), name)


def _judge(grids: Mapping[Run, Grid], run: FinishedExperiment) -> list[str]:
    """Where PairFlow is ahead of each baseline, by tests that are corrected (Holm) over all of them."""
    against = baselines(run.experiment)
    keys = [
        (place, baseline, nfe)
        for place, grid in grids.items()
        for baseline in against
        for method, nfe in sorted(grid.values)
        if method == OURS and (baseline, nfe) in grid.values
    ]
    tests = adjust(
        difference(grids[place].values[OURS, nfe], grids[place].values[baseline, nfe])
        for place, baseline, nfe in keys
    )
    cells: dict[tuple[Run, str], dict[int, Difference]] = {}
    for (place, baseline, nfe), cell in zip(keys, tests, strict=True):
        cells.setdefault((place, baseline), {})[nfe] = cell
    return [_describe(place, baseline, own) for (place, baseline), own in cells.items()]


def _describe(place: Run, baseline: str, cells: Mapping[int, Difference]) -> str:
    """`two_moons_d2 (d = 2), pairflow against condot: ahead at NFE 1 (...); undecided at NFE 8 (...).`"""
    (d, name), groups = place, {"ahead": [], "behind": [], "undecided": []}  # type: ignore[var-annotated]
    for nfe, cell in cells.items():
        word = "undecided" if not cell.decided else "ahead" if cell.value < 0 else "behind"
        ends = f", {_number(cell.low)} to {_number(cell.high)}" if cell.test else ""
        groups[word].append(f"{nfe} ({_number(cell.value)}{ends})")
    texts = [f"{word} at NFE {join_words(own)}" for word, own in groups.items() if own]
    return f"{name} (d = {d}), {OURS} against {baseline}: {'; '.join(texts)}."


def _number(value: float) -> str:
    return f"{value:+.2g}".replace("-", "−")
