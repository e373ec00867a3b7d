"""What would fill the cells of a table that no run has, and what that would cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from pairflow.config import Experiment, parse_method
from pairflow.report.paper.compare import Section
from pairflow.report.paper.measured import Run
from pairflow.report.paper.names import dataset_name
from pairflow.report.paper.printed import DATASETS, minutes
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
        found += [_of(name, experiments[name], runs.get(name)) for name in named]
    return [each for each in found if each]


def _of(name: str, experiment: Experiment, run: Run | None) -> Advice | None:
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
    return None


def cost(experiment: Experiment) -> str:
    """Time of one training seed by the paper's own table of cost; empty where that has no such data."""
    hours = seed_minutes(experiment) / 60
    if not hours:
        return ""
    return (
        f"One seed of all its {len(experiment.trained())} models is about {hours:,.0f} h on one RTX A6000 "
        "by the paper’s own table of cost: pairing, training and distillation, no sampling."
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
