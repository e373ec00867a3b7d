"""Printed values are judged only against the protocol's settings, whatever an experiment is called."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pairflow.config import Experiment
from pairflow.config.file import load, read
from pairflow.report.paper.advice import advise
from pairflow.report.paper.grids import PaperCell
from pairflow.report.paper.measured import Measurements
from pairflow.report.paper.printed import DATASETS, printed
from pairflow.report.paper.protocol import FILE, differences, differences_of_models, name_data, protocols
from pairflow.report.results import FinishedExperiment

SHIPPED = read(Path(__file__).parents[3] / "workflow_config.yaml").experiments
OTHER = {  # another value of each setting that is a word
    **{"random": "scaffold", "nelbo": "cross_entropy", "cosine": "constant", "constant": "cosine"},
    **{"raw": "ema", "inherit": "fresh", "euler": "ancestral", "ancestral": "euler"},
    **{"none": "exact", "exact": "none", "logistic": "categorical", "bert": "characters"},
    "velocity": "nelbo",
}
METHODS = {
    "pairing.redraw": "Random",
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
    if name not in ("free", "data.source", "network.name")  # of other data there is no cell
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


def judge(experiment: Experiment, section: str) -> PaperCell:
    """A cell that depends on a section of an experiment, measured as printed by three seeds."""
    metric, evaluation = (
        {"molecules": "valid", "images": "fid", "text": "entropy"}[experiment.modality],
        "main",
    )
    if section == "evaluations.check":
        metric, evaluation = "fid_50k", "check"
    if section == "correlation":
        metric, evaluation = "total_correlation", "correlation"
    continuous = experiment.flow == "continuous"
    metric = "fid_50k" if continuous else metric
    method = METHODS.get(section, "CondOT" if continuous else "UDLM")
    value = next(
        value
        for value in printed()
        if (value.dataset, value.metric, value.name) == (name_data(experiment), metric, method)
    )
    row = {"evaluation": evaluation, "metric": metric.removesuffix("_50k"), "method": value.method}
    row |= {"nfe": value.nfe, "value": value.value, "trial": 0}
    row |= {"reference": "train", "extractor": "inception-91"} if metric.startswith("fid") else {}
    rows = pd.DataFrame([{**row, "seed": seed} for seed in range(3)])
    rows = rows.reindex(columns=[*rows.columns.union(["reference", "extractor"])])
    run = FinishedExperiment("run", experiment, rows, pd.DataFrame())
    return PaperCell(value, Measurements(run).find(value), 1)


def section_of(name: str) -> str:
    return ".".join(name.split(".")[: 2 if name.startswith(("distillation", "evaluations")) else 1])


@pytest.mark.parametrize(("dataset", "name"), NUMBERS, ids=map(":".join, NUMBERS))
def test_a_run_that_differs_in_any_number_is_not_judged_and_says_which(dataset, name):
    section, experiment = section_of(name), SHIPPED[dataset]
    same = judge(experiment, section)
    assert same.judged or same.unjudged == "confounded"
    found = judge(change(experiment, name.split(".")), section)
    assert found.measured is not None
    assert not found.judged
    assert found.measured.reason.startswith(f"{name} is ")
    assert ", in the paper " in found.measured.reason


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


def test_pairs_drawn_again_are_not_the_papers_for_either_coupling_that_is_drawn_once():
    pairing = SHIPPED["qm9"].pairing.model_copy(update={"redraw": 5})
    redrawn = SHIPPED["qm9"].model_copy(update={"pairing": pairing})
    for section in ("pairing", "pairing.redraw"):
        assert judge(redrawn, section).measured.reason == "pairing.redraw is 5, in the paper not set"
    assert judge(redrawn, "network").judged  # of UDLM


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
