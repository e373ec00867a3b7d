"""What would fill the cells that no experiment has, and what that would cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.paper.costs import UNTIMED, describe_hours
from benchmarks.paper.grids import PaperSection
from benchmarks.paper.printed import DATASETS, Printed
from benchmarks.paper.protocol import differences_of_models, name_data
from benchmarks.paper.verdicts import SEEDS
from pairflow.config import Experiment
from pairflow.report.results import FinishedExperiment
from pairflow.report.words import join_words, pluralise


@dataclass(frozen=True)
class Advice:
    """A sentence, a command where there is one, and its hours as `ORIGIN` has them, where these are known."""

    text: str
    command: str = ""
    hours: str = ""


def advise(
    sections: Sequence[PaperSection],
    experiments: Mapping[str, Experiment],
    runs: Mapping[str, FinishedExperiment],
) -> Iterator[Advice]:
    """What to run so that the paper's values are measured, and judged: a piece for each experiment."""
    for dataset, title in DATASETS.items():
        names = [
            name
            for name, experiment in experiments.items()
            if name_data(experiment) == dataset and experiment.scale == "paper"
        ]
        if not names:
            yield Advice(f"No experiment on {title} at the paper’s scale is configured.")
        for name in names:
            yield _advise(sections, name, experiments[name], runs.get(name))
    others = [
        section for section in sections if not {value.dataset for value in section.values} & {*DATASETS}
    ]
    if others:
        titles = dict.fromkeys(section.title.partition(":")[0] for section in others)
        yield Advice(f"The workflow has no experiment on the data of {join_words([*titles])}.")


def _advise(
    sections: Sequence[PaperSection], name: str, experiment: Experiment, run: FinishedExperiment | None
) -> Advice:
    command = f"pairflow run {name} --cores 8 --gpus 1"
    if others := differences_of_models(experiment):
        text = f"{name} is called an experiment at the paper’s scale, but its values are not judged: "
        return Advice(f"{text}{'; '.join(others)}.", command * (run is None))
    seeds = len(experiment.seeds)
    if run is None:
        more = f" Numbers are judged from {SEEDS} seeds on; it has {seeds}." if seeds < SEEDS else ""
        untimed = "" if describe_hours(experiment) else f" {UNTIMED}"
        return Advice(f"{name} was not run.{more}{untimed}", command, describe_hours(experiment))
    if seeds < SEEDS:
        text = (
            f"{name} has {seeds} of the {SEEDS} training seeds that a judgement needs: "
            f"give it seeds: [{', '.join(map(str, range(SEEDS)))}]."
        )
        return Advice(text, command, describe_hours(experiment))
    missing = [value for section in sections for value in _missing(section, name, name_data(experiment))]
    if not missing:
        return Advice(f"{name} is finished, and has all values that the workflow can measure.")
    methods = dict.fromkeys(value.method for value in missing if value.method != "forward")
    new = [method for method in methods if method and method not in experiment.methods]
    steps = sorted({value.nfe for value in missing if value.nfe and value.method in experiment.methods})
    needs = [f"methods {', '.join(new)}"] * bool(new)
    needs += [f"NFE {', '.join(map(str, steps))} of the methods that it has"] * bool(steps)
    text = f"{name} is finished without {pluralise(len(missing), 'value')}"
    if not needs:
        return Advice(f"{text}, which its configuration does not ask for.")
    hours = describe_hours(experiment, new) if new else ""
    return Advice(f"{text}, which need the {'; '.join(needs)}.", command, hours)


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
