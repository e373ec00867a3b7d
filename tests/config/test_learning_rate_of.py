"""A learning rate of a base: each distillation is passed the one that it depends on."""

from pathlib import Path

import pytest
import yaml

from pairflow.config import Experiment, check
from pairflow.errors import InputError

SHIPPED = yaml.safe_load((Path(__file__).parents[2] / "workflow_config.yaml").read_text())["experiments"]
METHODS = ["udlm+redi", "pairflow+redi", "pairflow-sub4+redi+redi"]


def experiment(rates: dict | None, **changes) -> Experiment:
    redi = SHIPPED["qm9"]["distillation"]["redi"] | changes
    redi.pop("learning_rate_of")
    redi |= {} if rates is None else {"learning_rate_of": rates}
    return check(Experiment, SHIPPED["qm9"] | {"methods": METHODS, "distillation": {"redi": redi}}, "test")


def test_each_step_is_passed_one_number():
    made = experiment({"pairflow": 3e-4})
    passed = [made.distill_settings(method, 0).model_dump(mode="json")["distillation"] for method in METHODS]
    assert [how["learning_rate"] for how in passed] == [6e-5, 3e-4, 3e-4]
    assert all(how["learning_rate_of"] == {} for how in passed)
    without = experiment(None)
    assert without.distill_settings("udlm+redi", 0) == made.distill_settings("udlm+redi", 0)


def test_mistakes_are_named():
    with pytest.raises(InputError, match=r"learning_rate_of.pairflaw: no base method .*'pairflow'"):
        experiment({"pairflaw": 3e-4})
    with pytest.raises(InputError, match=r"final_learning_rate: 3e-06 is above learning_rate_of.pairflow"):
        experiment({"pairflow": 1e-6})
    with pytest.raises(InputError, match="learning_rate_of"):
        experiment({"pairflow": 0.0})
