"""The counterpart of the figure on N-fold two moons: Chamfer distances by dimension, and who is ahead."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pairflow.report import figures
from pairflow.report.drawing import Legend, Picture, legend
from pairflow.report.panels import Panel, leading_panel
from pairflow.report.results import FinishedExperiment
from pairflow.report.stats import Difference, adjust, difference
from pairflow.report.tables import make_table, summarise
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
    panels: dict[Run, Panel] = {}
    experiments = {run.name: run for run in runs if run.experiment.data.source == "two_moons"}
    for run in experiments.values():
        panel = leading_panel(run.metrics, run.experiment)
        if panel is not None:
            panels[getattr(run.experiment.data, "dims", 0), run.name] = panel
    if not panels:
        return None
    panels = dict(sorted(panels.items()))
    methods = list(dict.fromkeys(name for panel in panels.values() for name, _ in panel.values))
    return MoonsPage(
        {f"d = {d}: {name}": _chart(panel, methods, f"moons-{name}") for (d, name), panel in panels.items()},
        legend(methods, "moons", figures.contrast(methods)),
        _judge(panels, next(iter(experiments.values()))),
    )


def _chart(panel: Panel, methods: list[str], name: str) -> Picture:
    rows = summarise(panel.rows)
    table = make_table(rows, panel.evaluation, panel.metric, panel.about, methods, panel.beside, panel.floor)
    return figures.quality(table, panel.rows.samples, name)


def _judge(panels: Mapping[Run, Panel], run: FinishedExperiment) -> list[str]:
    """Where PairFlow is ahead of each baseline, by tests that are corrected (Holm) over all of them."""
    against = baselines(run.experiment)
    keys = [
        (place, baseline, nfe)
        for place, panel in panels.items()
        for baseline in against
        for method, nfe in sorted(panel.values)
        if method == OURS and (baseline, nfe) in panel.values
    ]
    tests = adjust(
        difference(panels[place].values[OURS, nfe], panels[place].values[baseline, nfe])
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
