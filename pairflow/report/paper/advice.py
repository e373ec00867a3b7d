"""What would fill the cells of a table that no run has, and what that would cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from pairflow.config import Experiment, parse_method
from pairflow.report.paper.compare import Section, within
from pairflow.report.paper.measured import Run
from pairflow.report.paper.names import dataset_name
from pairflow.report.paper.printed import DATASETS, Printed, minutes
from pairflow.report.paper.verdicts import SEEDS

_WORK = {"dcd": "DCD", "redi": "ReDi"}


@dataclass(frozen=True)
class Advice:
    """A sentence, a command where there is one, and where its cost is from."""

    text: str
    command: str = ""
    cost: str = ""


def advice(section: Section, experiments: Mapping[str, Experiment], runs: Mapping[str, Run]) -> list[Advice]:
    """How a table's cells come to be measured, and judged, at the paper's scale."""
    found = []
    others = [dataset_name(dataset) for dataset in section.datasets if dataset not in DATASETS]
    if others:
        found.append(
            Advice(f"Printed values only: the workflow has no experiment on this data ({section.title}).")
        )
    for dataset in section.datasets:
        named = [
            name
            for name, each in experiments.items()
            if each.data.source == dataset and each.scale == "paper"
        ]
        if dataset in DATASETS and not named:
            found.append(Advice(f"No experiment on {DATASETS[dataset]} at the paper’s scale is configured."))
        found += [_of(section, name, experiments[name], runs.get(name)) for name in named]
    return [each for each in found if each]


def _of(section: Section, name: str, experiment: Experiment, run: Run | None) -> Advice | None:
    command = f"snakemake --cores 8 --resources gpu=1 -- results/{name}/report.html"
    if run is None:
        seeds = len(experiment.seeds)
        more = f" Numbers are judged from {SEEDS} seeds on; it has {seeds}." if seeds < SEEDS else ""
        return Advice(f"Not run yet: {name}, at the paper’s scale.{more}", command, cost(experiment))
    if run.seeds < SEEDS:
        wanted = ", ".join(map(str, range(SEEDS)))
        text = (
            f"{name} has {run.seeds} of the {SEEDS} training seeds that a judgement needs: "
            f"give it seeds: [{wanted}]."
        )
        return Advice(text, command, cost(experiment))
    missing = [value for value in _missing(section, name) if value.dataset == experiment.data.source]
    if not missing:
        return None
    methods = [each for each in dict.fromkeys(value.method for value in missing) if each != "forward"]
    new = [each for each in methods if each not in experiment.methods]
    steps = sorted({value.nfe for value in missing if value.nfe and value.method in experiment.methods})
    needs = [f"methods {', '.join(new)}"] * bool(new)
    needs += [f"NFE {', '.join(map(str, steps))} of the methods that it has"] * bool(steps)
    listed = "; ".join(needs)
    needed = f", which needs the {listed}" if listed else ", whose configuration does not ask for them"
    text = f"Finished without all values of this table: {name}{needed}."
    return Advice(text, command, _cost_of(experiment, new) if new else "")


def _missing(section: Section, name: str) -> list[Printed]:
    """Printed values that a run of this workflow could have, and this one has not."""
    found = []
    for grid in section.grids:
        for row in grid.rows:
            cells = row.runs.get(name, [None] * len(row.printed))
            pairs = zip(row.printed, cells, strict=True)
            found += [value for value, cell in pairs if value and not (cell and cell.measured)]
    return [value for value in found if value.method and within(value)]


def cost(experiment: Experiment) -> str:
    """Time of one training seed by the paper's own table of cost; empty where that has no such data."""
    hours = seed_minutes(experiment) / 60
    return f"One seed of all its {len(experiment.trained())} models{_about(hours)}" if hours else ""


def _cost_of(experiment: Experiment, methods: list[str]) -> str:
    """The same of some methods that it does not have, beside those that it has."""
    more = experiment.model_copy(update={"methods": (*experiment.methods, *methods)})
    hours = (seed_minutes(more) - seed_minutes(experiment)) / 60
    models = len(more.trained()) - len(experiment.trained())
    return f"One seed of the {models} model{'s' * (models > 1)} more{_about(hours)}" if hours else ""


def _about(hours: float) -> str:
    return (
        f" is about {hours:,.0f} h on one RTX A6000 by the paper’s own table of cost: pairing, training and "
        "distillation, no sampling."
    )


def seed_minutes(experiment: Experiment) -> float:
    """Minutes on an RTX A6000, as printed, of pairing and training every model of an experiment once."""
    printed = minutes(experiment.data.source)
    if not printed:
        return 0.0
    total = 0.0
    for name in experiment.trained():
        parsed = parse_method(name)
        total += printed[_WORK[parsed.distillations[-1]] if parsed.distillations else "base"]
    for name in experiment.couplings():
        parsed = parse_method(name)
        total += printed["PairFlow"] / parsed.subsets if parsed.base == "pairflow" else 0.0
    return total
