"""The report step's timings: a row per job, from the provenance beside its output."""

import json

import pandas as pd
import pytest
from pages import make_experiment

from pairflow.artifacts import provenance_path
from pairflow.config import Experiment
from pairflow.plan import paths
from pairflow.plan.jobs import jobs
from pairflow.report.experiment.gather import read_timings
from pairflow.report.results import FinishedExperiment

RUN = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-3}


@pytest.fixture
def experiment() -> Experiment:
    return make_experiment(
        distillation={"dcd": {**RUN, "teacher_every": 2}, "redi": RUN},
        methods=("pairflow+redi+redi", "udlm+dcd"),
        evaluations={"main": {"nfe": [1]}},
    )


def test_every_model_on_the_way_has_its_jobs_parents_first(experiment, tmp_path):
    times = read_timings(jobs(tmp_path, experiment))
    trained = times[times.step.isin(["train", "teach", "distill"])]
    rounds = [(step, f"pairflow{rounds * '+redi'}") for rounds in (1, 2) for step in ("teach", "distill")]
    udlm = [("train", "udlm"), ("distill", "udlm+dcd")]
    assert list(zip(trained.step, trained.method, strict=True)) == [("train", "pairflow"), *rounds, *udlm]
    assert times.loc[times.step == "pair", "method"].tolist() == ["pairflow"]


def test_absent_provenance_and_absent_keys_are_null(experiment, tmp_path):
    new = {"seconds": 2.0, "device_seconds": 3.5, "samples_seen": 32, "peak_memory_mb": 1.0, "device": "cpu"}
    old = {"seconds": 2.0, "peak_memory_mb": 1.0, "device": "cpu"}
    for method, facts in {"pairflow": new, "udlm": old}.items():
        path = provenance_path(paths.model(tmp_path, 0, method) / "model.safetensors")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(facts))
    times = read_timings(jobs(tmp_path, experiment))
    train = times[times.step == "train"].set_index("method")
    assert train.loc["pairflow", ["device_seconds", "samples_seen"]].tolist() == [3.5, 32]
    assert train.loc["udlm", "seconds"] == 2.0
    assert train.loc["udlm", ["device_seconds", "samples_seen"]].isna().all()
    rest = times[times.step != "train"]
    assert rest[["seconds", "device_seconds", "samples_seen", "device"]].isna().all(axis=None)
    assert times.dtypes["samples_seen"] == pd.Int64Dtype()


def test_a_bound_is_the_mean_over_seeds(experiment):
    rows = pd.DataFrame(
        {
            "method": ["udlm", "udlm", "pairflow", "pairflow", "udlm"],
            "seed": [0, 1, 0, 1, 0],
            "metric": [*["nll_bound"] * 4, "copies"],
            "value": [1.0, 2.0, 3.0, 5.0, 0.5],
        }
    ).assign(evaluation=[*["likelihood"] * 4, "main"])
    finished = FinishedExperiment("a", experiment, rows, pd.DataFrame())
    assert finished.bounds == {"nll_bound": {"udlm": 1.5, "pairflow": 4.0}}
