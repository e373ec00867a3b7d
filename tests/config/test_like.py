"""Experiments that are like another one, in one file and in several."""

import re
from pathlib import Path

import pytest
import yaml

from pairflow import InputError
from pairflow.config.file import LONGEST, complete_likes, experiment, read

BASE = {
    "data": {"source": "a.smi", "length": 16},
    "network": {"name": "mlp", "width": 8, "blocks": 2},
    "methods": ["udlm", "pairflow"],
    "evaluations": {"main": {"nfe": [1], "trials": 2}, "other": {"nfe": [2]}},
}


def test_mappings_are_merged_and_other_values_replaced():
    changes = {"network": {"width": 16}, "methods": ["udlm"]}
    changes |= {"evaluations": {"main": {"nfe": [4, 8]}, "other": None}}
    result = complete_likes({"base": BASE, "mine": {"like": "base", **changes}}, {}, "x")
    assert result["base"] == BASE
    assert result["mine"] == {
        "data": BASE["data"],
        "network": {"name": "mlp", "width": 16, "blocks": 2},
        "methods": ["udlm"],
        "evaluations": {"main": {"nfe": [4, 8], "trials": 2}},
    }


def test_another_network_or_source_shares_no_settings():
    unet, qm9 = {"name": "unet", "channels": 8}, {"source": "qm9"}
    mine = {"network": unet, "data": qm9}
    assert complete_likes({"mine": {"like": "base", **mine}}, {"base": BASE}, "x") == {"mine": BASE | mine}


def test_chains_and_their_longest():
    chain = {f"e{number}": {"like": f"e{number + 1}", "seeds": [number]} for number in range(LONGEST)}
    assert complete_likes({**chain, f"e{LONGEST}": BASE}, {}, "x")["e0"] == {**BASE, "seeds": [0]}
    message = f"x: experiments.e{LONGEST}.like: a circle, or a chain of more than {LONGEST} experiments"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        complete_likes({**chain, f"e{LONGEST}": {"like": "e0"}}, {}, "x")


@pytest.mark.parametrize("other", ["bse", ["base"], None])
def test_an_unknown_name(other):
    with pytest.raises(InputError, match=r"^x: experiments\.mine\.like: no experiment "):
        complete_likes({"mine": {"like": other}, "base": BASE}, {}, "x")


def test_own_experiments_are_like_shipped_ones(project):
    Path("experiments").mkdir()
    mine = {"like": "qm9_small", "training": {"iterations": 1000}}
    mine = {"mine": mine, "its": {"like": "mine", "seeds": [3]}}
    Path("experiments/mine.yaml").write_text(yaml.safe_dump({"experiments": mine}))
    Path("experiments/other.yaml").write_text(yaml.safe_dump({"experiments": {"bad": {"like": "qm8"}}}))
    workflow = read(Path("workflow_config.yaml"))
    shipped, its = workflow.experiments["qm9_small"], workflow.experiments["its"]
    assert (its.training.iterations, *its.seeds) == (1000, 3)
    assert (its.network, its.distillation) == (shipped.network, shipped.distillation)
    message = r"^experiments/other\.yaml: experiments\.bad\.like: no experiment 'qm8' \(did you mean 'qm9'"
    with pytest.raises(InputError, match=message):
        experiment(workflow, "bad", Path("workflow_config.yaml"))
