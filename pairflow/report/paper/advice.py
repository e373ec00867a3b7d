"""What would fill the cells of a table that no experiment has, and what that would cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pairflow.config import Experiment, parse_method
from pairflow.report.paper.grids import PaperSection
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
) -> Iterator[Advice]:
    """How a table's cells can be measured, and judged, at the paper's scale."""
    datasets = list(dict.fromkeys(value.dataset for value in section.values))
    if not set(datasets) <= set(DATASETS):
        yield Advice(f"Printed values only: the workflow has no experiment on this data ({section.title}).")
    for dataset in datasets:
        names = [
            name
            for name, experiment in experiments.items()
            if experiment.data.source == dataset and experiment.scale == "paper"
        ]
        if dataset in DATASETS and not names:
            yield Advice(f"No experiment on {DATASETS[dataset]} at the paper’s scale is configured.")
        for name in names:
            yield from _advise(section, name, experiments[name], runs.get(name))


def _advise(
    section: PaperSection, name: str, experiment: Experiment, run: FinishedExperiment | None
) -> Iterator[Advice]:
    command = f"snakemake --cores 8 --resources gpu=1 -- results/{name}/report.html"
    seeds = len(experiment.seeds)
    missing = _missing(section, name, experiment.data.source)
    if run is None:
        more = f" Numbers are judged from {SEEDS} seeds on; it has {seeds}." if seeds < SEEDS else ""
        yield Advice(f"Not run yet: {name}, at the paper’s scale.{more}", command, cost(experiment))
    elif seeds < SEEDS:
        text = (
            f"{name} has {seeds} of the {SEEDS} training seeds that a judgement needs: "
            f"give it seeds: [{', '.join(map(str, range(SEEDS)))}]."
        )
        yield Advice(text, command, cost(experiment))
    elif missing:
        methods = dict.fromkeys(value.method for value in missing if value.method != "forward")
        new = [method for method in methods if method and method not in experiment.methods]
        steps = sorted({value.nfe for value in missing if value.nfe and value.method in experiment.methods})
        needs = [f"methods {', '.join(new)}"] * bool(new)
        needs += [f"NFE {', '.join(map(str, steps))} of the methods that it has"] * bool(steps)
        need = f"which needs the {'; '.join(needs)}" if needs else "whose configuration does not ask for them"
        text = f"Finished without all values of this table: {name}, {need}."
        yield Advice(text, command, cost(experiment, new) if new else "")


def _missing(section: PaperSection, name: str, dataset: str) -> list[Printed]:
    """Values of a data set that the workflow can measure, and that this experiment on it has not."""
    return [
        value
        for value, cells in section.cells
        if value.dataset == dataset
        and value.method
        and value.measurable
        and not (name in cells and cells[name].measured)
    ]


def cost(experiment: Experiment, methods: Sequence[str] = ()) -> str:
    """Time of one training seed by the paper's own table of cost; empty where that does not tell.

    It is that of all models, or of those that further `methods` need beside them.
    """
    models, total = len(experiment.trained()), seed_minutes(experiment)
    what = f"all its {models} models"
    if methods:
        extended = experiment.model_copy(update={"methods": (*experiment.methods, *methods)})
        total = seed_minutes(extended) - total
        what = pluralise(len(extended.trained()) - models, "further model")
    if total <= 0:
        return ""
    return (
        f"One seed of {what} takes about {total / 60:,.0f} h on one RTX A6000 by the paper’s own table of "
        "cost, for pairing, training and distillation, without sampling."
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
