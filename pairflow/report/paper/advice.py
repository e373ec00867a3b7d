"""What would fill the cells of a table that no experiment has, and what that would cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from pairflow.config import Experiment, parse_method
from pairflow.report.paper.grids import PaperSection, is_measurable
from pairflow.report.paper.printed import DATASETS, Printed, minutes
from pairflow.report.paper.verdicts import SEEDS
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import name_distillation, pluralise


@dataclass(frozen=True)
class Advice:
    """A sentence, a command where there is one, and where its cost is from."""

    text: str
    command: str = ""
    cost: str = ""


def advise(
    section: PaperSection, experiments: Mapping[str, Experiment], runs: Mapping[str, FinishedExperiment]
) -> list[Advice]:
    """How a table's cells can be measured, and judged, at the paper's scale."""
    advice: list[Advice | None] = []
    if not all(dataset in DATASETS for dataset in section.datasets):
        text = f"Printed values only: the workflow has no experiment on this data ({section.title})."
        advice.append(Advice(text))
    for dataset in section.datasets:
        names = [
            name
            for name, experiment in experiments.items()
            if experiment.data.source == dataset and experiment.scale == "paper"
        ]
        if dataset in DATASETS and not names:
            advice.append(Advice(f"No experiment on {DATASETS[dataset]} at the paper’s scale is configured."))
        advice += [_advise(section, name, experiments[name], runs.get(name)) for name in names]
    return [one for one in advice if one]


def _advise(
    section: PaperSection, name: str, experiment: Experiment, run: FinishedExperiment | None
) -> Advice | None:
    command = f"snakemake --cores 8 --resources gpu=1 -- results/{name}/report.html"
    seeds = len(experiment.seeds)
    if run is None:
        more = f" Numbers are judged from {SEEDS} seeds on; it has {seeds}." if seeds < SEEDS else ""
        return Advice(f"Not run yet: {name}, at the paper’s scale.{more}", command, cost(experiment))
    if seeds < SEEDS:
        text = (
            f"{name} has {seeds} of the {SEEDS} training seeds that a judgement needs: "
            f"give it seeds: [{', '.join(map(str, range(SEEDS)))}]."
        )
        return Advice(text, command, cost(experiment))
    missing = [value for value in _missing(section, name) if value.dataset == experiment.data.source]
    if not missing:
        return None
    methods = dict.fromkeys(value.method for value in missing if value.method and value.method != "forward")
    new = [method for method in methods if method not in experiment.methods]
    steps = sorted({value.nfe for value in missing if value.nfe and value.method in experiment.methods})
    needs = [f"methods {', '.join(new)}"] * bool(new)
    needs += [f"NFE {', '.join(map(str, steps))} of the methods that it has"] * bool(steps)
    need = f"which needs the {'; '.join(needs)}" if needs else "whose configuration does not ask for them"
    text = f"Finished without all values of this table: {name}, {need}."
    return Advice(text, command, _describe_extra_cost(experiment, new) if new else "")


def _missing(section: PaperSection, name: str) -> list[Printed]:
    """Printed values that the workflow can measure, and that this experiment has not."""
    missing: list[Printed] = []
    for grid in section.grids:
        for row in grid.rows:
            cells = row.runs.get(name, [None] * len(row.printed))
            pairs = zip(row.printed, cells, strict=True)
            missing += [value for value, cell in pairs if value and not (cell and cell.measured)]
    return [value for value in missing if value.method and is_measurable(value)]


def cost(experiment: Experiment) -> str:
    """Time of one training seed by the paper's own table of cost; empty where that does not tell."""
    hours = seed_minutes(experiment) / 60
    return f"One seed of all its {len(experiment.trained())} models{_about(hours)}" if hours else ""


def _describe_extra_cost(experiment: Experiment, methods: list[str]) -> str:
    """The same for methods that the experiment does not have, beside those that it has."""
    extended = experiment.model_copy(update={"methods": (*experiment.methods, *methods)})
    hours = (seed_minutes(extended) - seed_minutes(experiment)) / 60
    models = len(extended.trained()) - len(experiment.trained())
    return f"One seed of {pluralise(models, 'further model')}{_about(hours)}" if hours > 0 else ""


def _about(hours: float) -> str:
    return (
        f" takes about {hours:,.0f} h on one RTX A6000 by the paper’s own table of cost, for pairing, "
        "training and distillation, without sampling."
    )


def seed_minutes(experiment: Experiment) -> float:
    """Minutes on an RTX A6000, as printed, for pairing and training every model of an experiment once.

    0 where the paper does not tell: on other data, or with a distillation that it does not have.
    """
    printed = minutes(experiment.data.source)
    work = [name_distillation(name) or "base" for name in experiment.trained()]
    if not set(work) <= set(printed):
        return 0.0
    total = sum(printed[name] for name in work)
    for name in experiment.couplings():
        method = parse_method(name)
        total += printed["PairFlow"] / method.subsets if method.base == "pairflow" else 0.0
    return total
