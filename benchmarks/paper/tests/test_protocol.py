"""Printed values are judged only against the protocol's settings, whatever an experiment is called."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.paper.advice import advise
from benchmarks.paper.grids import PaperCell
from benchmarks.paper.measured import SOURCES, Measured, Measurements, MetricSource
from benchmarks.paper.printed import DATASETS, MINUTES, Printed, printed
from benchmarks.paper.protocol import FILE, differences, differences_of_models, name_data, protocols
from pairflow.config import Experiment
from pairflow.config.file import load, read
from pairflow.report.results import FinishedExperiment

SHIPPED = read(Path(__file__).parents[3] / "workflow_config.yaml").experiments
OTHER = {  # another value of each setting that is a word
    **{"random": "scaffold", "nelbo": "cross_entropy", "cosine": "constant", "constant": "cosine"},
    **{"raw": "ema", "inherit": "fresh", "euler": "ancestral", "ancestral": "euler"},
    **{"none": "exact", "exact": "none", "logistic": "categorical", "bert": "characters"},
    "velocity": "nelbo",
}
METHODS = {
    "pairing": "PairFlow",
    "distillation.dcd": "UDLM+DCD",
    "distillation.redi": "UDLM+ReDi",
    "distillation.rf": "CondOT+RF",
}


def settings(values: Any, name: str = "") -> Iterator[str]:
    """Names of the settings in a mapping."""
    if not isinstance(values, dict):
        yield name
        return
    for key, value in values.items():
        yield from settings(value, f"{name}.{key}".lstrip("."))


NUMBERS = [
    (dataset, name)
    for dataset, values in load(FILE.read_text(), FILE).items()
    for name in settings(values)
    if name not in ("free", "unstated", "data.source", "network.name")  # of other data there is no cell
    and (dataset[:4], name) != ("lm1b", "data.length")
]


def change(section: Any, path: list[str]) -> Any:
    """A section with another value of the same kind at the path, unchecked."""
    key = path[0]
    value = section[key] if isinstance(section, dict) else getattr(section, key)
    if path[1:]:
        value = change(value, path[1:])
    elif isinstance(value, str):
        value = OTHER[value]
    elif isinstance(value, tuple):
        value = (*value, 1)
    elif isinstance(value, bool):
        value = not value
    else:
        value = (value or 0) + 1
    return {**section, key: value} if isinstance(section, dict) else section.model_copy(update={key: value})


def judge(experiment: Experiment, section: str, base: str = "") -> PaperCell:
    """A cell that depends on a section of an experiment, measured as printed by three seeds.

    Of PairFlow where `base` is that; else of a method that has the section.
    """
    metric, evaluation = (
        {"molecules": "valid", "images": "fid", "text": "entropy"}[experiment.data.kind],
        "main",
    )
    if section == "evaluations.check":
        metric, evaluation = "fid_50k", "check"
    if section == "correlation":
        metric, evaluation = "total_correlation", "correlation"
    continuous = experiment.flow == "continuous"
    metric = "fid_50k" if continuous else metric
    method = METHODS.get(section, "CondOT" if continuous else "UDLM")
    method = method.replace("UDLM", "PairFlow") if base == "pairflow" else method
    value = next(
        value
        for value in printed()
        if (value.dataset, value.metric, value.name) == (name_data(experiment), metric, method)
    )
    source = MetricSource(metric.removesuffix("_50k"), evaluation=evaluation)
    if metric.startswith("fid"):
        source = source._replace(reference="train", extractor="inception")
    return PaperCell(value, measure(experiment, value, source), 1)


def measure(experiment: Experiment, value: Printed, source: MetricSource) -> Measured | None:
    """A printed value, measured by three seeds of an experiment."""
    row = {"evaluation": source.evaluation or source.protocol, "metric": source.metric}
    row |= {"method": value.method, "nfe": value.nfe, "value": value.value, "trial": 0}
    row |= {"reference": source.reference, "extractor": f"{source.extractor}-91"}
    rows = pd.DataFrame([{**row, "seed": seed} for seed in range(3)])
    return Measurements(FinishedExperiment("run", experiment, rows, pd.DataFrame())).find(value)


def measure_as_printed(value: Printed) -> Measured:
    """A printed value as the shipped experiment on its data would measure it."""
    source, experiment = SOURCES[value.metric][0], SHIPPED[value.dataset]
    protocol = source.protocol if source.protocol in experiment.evaluations else "main"
    found = measure(experiment, value, source._replace(protocol=protocol))
    assert found is not None, value
    return found


def section_of(name: str) -> str:
    return ".".join(name.split(".")[: 2 if name.startswith(("distillation", "evaluations")) else 1])


@pytest.mark.parametrize(("dataset", "name"), NUMBERS, ids=map(":".join, NUMBERS))
def test_a_run_that_differs_in_any_number_is_not_judged_and_says_which(dataset, name):
    section, experiment = section_of(name), SHIPPED[dataset]
    path = name.split(".")
    name, _, base = name.partition("_of.")  # a rate of one base is the learning rate of its methods
    same = judge(experiment, section, base)
    assert same.judged or same.unjudged in ("confounded", "unstated")
    found = judge(change(experiment, path), section, base)
    assert found.measured is not None
    assert not found.judged
    assert found.measured.reason.startswith(f"{name} is ")
    assert ", in the paper " in found.measured.reason


def test_exactly_the_values_that_depend_on_unstated_settings_are_not_judged_for_that():
    """Measured as printed by the shipped experiments: all values of three data sets, and of three metrics."""
    values = [value for value in printed() if value.measurable and value.metric not in MINUTES]
    metrics = {"coverage": "coverage", "unique_reached": "coverage", "nn_l2_train": "distance"}
    found = Counter(
        (value.dataset.partition("_n")[0], metrics.get(value.metric, "any"))
        for value in values
        if measure_as_printed(value).reason.startswith("unstated: the paper does not say its ")
    )
    whole = {("lm1b", "any"): 144, ("mnist_continuous", "any"): 28, ("ffhq64", "any"): 22}
    distances = {("mnist_binary", "distance"): 42, ("cifar10", "distance"): 22}
    coverage = {(name, "coverage"): 2 for name in ("qm9", "zinc250k", "mnist_binary", "cifar10")}
    assert found == whole | distances | coverage


def test_a_learning_rate_of_one_base_makes_the_numbers_of_redi_on_qm9_comparable():
    """All 168 of them are judged, but none of their effects."""
    confounded = [value for value in printed() if value.dataset == "qm9" and value.confounded]
    values = [value for value in confounded if value.metric not in MINUTES]
    assert len(values) == 168
    assert {measure_as_printed(value).reason for value in values} == {""}
    redi = SHIPPED["qm9"].distillation.redi.model_copy(update={"learning_rate_of": {}})
    one = SHIPPED["qm9"].model_copy(
        update={"distillation": SHIPPED["qm9"].distillation.model_copy(update={"redi": redi})}
    )
    reason = judge(one, "distillation.redi", "pairflow").measured.reason
    assert reason == "distillation.redi.learning_rate is 6e-05, in the paper 0.0003"
    assert judge(one, "distillation.redi").judged  # that of UDLM


def test_every_data_set_has_its_protocol_and_the_shipped_experiments_are_these():
    assert tuple(protocols()) == tuple(DATASETS)
    for name, protocol in protocols().items():
        evaluations = [f"evaluations.{key}" for key in protocol.evaluations]
        assert differences(SHIPPED[name], [*evaluations, "correlation"]) == []
        assert differences_of_models(SHIPPED[name]) == []


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_shipped_experiments_have_every_printed_method_at_every_printed_nfe(dataset):
    experiment = SHIPPED[dataset]
    evaluated = {
        (method, nfe)
        for name, evaluation in experiment.evaluations.items()
        for method in experiment.evaluated(name)
        for nfe in evaluation.nfe
    }
    evaluated |= {(method, experiment.correlation.steps) for method in experiment.correlated()}
    assert {
        (value.method, value.nfe) for value in printed() if value.dataset == dataset and value.nfe
    } <= evaluated


def test_a_small_network_is_not_the_papers_whatever_it_is_called():
    network = SHIPPED["qm9_small"].network.model_copy(update={"width": 64})
    experiment = SHIPPED["qm9"].model_copy(update={"network": network})
    found = judge(experiment, "network")
    assert found.measured.reason == "network.name is mlp, in the paper transformer"
    assert found.difference == "0.0"  # it is shown
    both = experiment.model_copy(
        update={"training": SHIPPED["qm9"].training.model_copy(update={"batch_size": 128})}
    )
    assert (
        judge(both, "network").measured.reason == "network.name is mlp, in the paper transformer, and 1 more"
    )
    advice, *_ = advise([], {"qm9": both}, {})
    assert advice.text == (
        "qm9 is called an experiment at the paper’s scale, but its values are not judged: "
        "network.name is mlp, in the paper transformer; training.batch_size is 128, in the paper 1,024."
    )


def test_only_what_a_value_depends_on_is_compared():
    pairing = change(SHIPPED["qm9"], ["pairing", "steps"])
    assert judge(pairing, "network").judged  # of UDLM, which has no pairing
    assert judge(pairing, "pairing").measured.reason == "pairing.steps is 21, in the paper 20"


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        ("qm9", "training.validate_every"),
        ("qm9", "distillation.dcd.ema_decay"),
        ("cifar10", "evaluations.main.trials"),
    ],
)
def test_what_changes_no_value_may_differ(dataset, name):
    assert judge(change(SHIPPED[dataset], name.split(".")), section_of(name)).judged


def test_a_setting_that_the_protocol_does_not_name_must_have_its_default():
    found = judge(change(SHIPPED["qm9"], ["data", "drop_duplicates"]), "data")
    assert found.measured.reason == "data.drop_duplicates is true, in the paper false"


def test_lm1b_in_rows_of_another_length_is_not_the_papers():
    experiment = change(SHIPPED["lm1b_n16"], ["data", "length"])
    assert differences_of_models(experiment) == ["the paper has no data lm1b_n17"]
    value = next(value for value in printed() if value.dataset == "lm1b_n16")
    rows = pd.DataFrame(columns=["evaluation", "metric", "method", "nfe", "value", "reference", "extractor"])
    run = FinishedExperiment("run", experiment, rows, pd.DataFrame())
    assert Measurements(run).find(value) is None
