from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import make_experiment

from pairflow.config import BASES, DISTILLATIONS, Experiment
from pairflow.config.file import read
from pairflow.config.methods import PAIRINGS
from pairflow.plan.jobs import jobs
from pairflow.report.costs import training_costs

COLUMNS = ["step", "method", "seed", "seconds", "device_seconds", "samples_seen", "peak_memory_mb"]
SHIPPED = read(Path(__file__).parents[2] / "workflow_config.yaml").experiments
RUN = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-3}


@pytest.fixture
def experiment() -> Experiment:
    return make_experiment(distillation={"redi": {**RUN, "pairs": {"count": 500}}})


def timings(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).assign(device="cpu").astype({"samples_seen": "Int64"})


@pytest.fixture
def costs(experiment):
    """What training cost by rows of timings."""
    return lambda *rows: training_costs(timings(*rows), experiment)


TRAIN = ("train", "pairflow", 0, 200.0, 380.0, 64_000, 500.0)
PAIR = ("pair", "pairflow", 0, 5.0, 9.0, None, 300.0)
DCD = ("distill", "pairflow+dcd", 0, 40.0, 78.0, 8_000, 520.0)
TEACH = ("teach", "pairflow+redi", 0, 30.0, 55.0, None, 700.0)
REDI = ("distill", "pairflow+redi", 0, 50.0, 95.0, 16_000, 510.0)


def test_rows_of_a_base_with_known_shares(costs):
    base, pairing, dcd, redi = costs(PAIR, TRAIN, DCD, TEACH, REDI)["pairflow"]
    assert (base.method, base.work, base.share) == ("pairflow", "base training", 1.0)
    assert (base.seconds, base.device_seconds, base.samples_seen) == (200.0, 380.0, 64_000)
    assert (pairing.method, pairing.work, pairing.share) == ("pairflow", "pairing", 0.025)
    assert (dcd.method, dcd.work, dcd.share, dcd.samples_seen) == ("pairflow+dcd", "DCD", 0.2, 8_000)
    assert (redi.method, redi.work) == ("pairflow+redi", "ReDi")
    # Drawing the pairs, and training on them.
    assert (redi.seconds, redi.device_seconds, redi.share) == (80.0, 150.0, 0.4)
    assert (redi.samples_seen, redi.samples_generated) == (16_000, 500)
    assert redi.peak_memory_mb == 700.0


@pytest.mark.parametrize("name", [name for name, kind in DISTILLATIONS.items() if kind.on_pairs])
def test_every_distillation_on_pairs_counts_those_that_its_teacher_drew(name):
    kind = DISTILLATIONS[name]
    plan = SHIPPED["two_moons_d2" if kind.flow == "continuous" else "demo"]
    rounds = plan.distillation.model_copy(update={name: kind(**RUN, pairs={"count": 700})})
    plan = plan.model_copy(update={"distillation": rounds})
    rows = [(step, f"pairflow+{name}", *numbers) for step, _, *numbers in (TEACH, REDI)]
    _, cost = training_costs(timings(TRAIN, *rows), plan)["pairflow"]
    assert (cost.method, cost.samples_generated) == (f"pairflow+{name}", 700)


@pytest.mark.parametrize("base", BASES)
def test_every_base_method_on_pairs_has_the_cost_of_making_them(base):
    """The timings have a row for each job of the workflow, by the name of its rule."""
    tokens = "discrete" in BASES[base].flows
    method = f"{base}-mine" if BASES[base].user_pairs else base
    own = {"pairs": {"mine": "mine.parquet"}} if BASES[base].user_pairs else {}
    plan = make_experiment(methods=[method], **own) if tokens else SHIPPED["two_moons_d2"]
    seconds = {"train": 200.0} | dict.fromkeys(PAIRINGS, 5.0)
    table = [job for job in jobs(Path("results/mini"), plan) if job.method == method]
    rows = [(job.rule, method, job.seed, seconds.get(job.rule, 1.0), 1.0, 1, 1.0) for job in table]
    works = {cost.work: cost.seconds for cost in training_costs(timings(*rows), plan)[method]}
    assert works == {"base training": 200.0} | ({"pairing": 5.0} if BASES[base].coupled else {})


def test_means_over_seeds_and_the_largest_memory(costs):
    second = ("train", "pairflow", 1, 100.0, 180.0, 64_000, 600.0)
    taught = [("teach", "pairflow+redi", 1, 10.0, 5.0, None, 1.0)]
    distilled = ("distill", "pairflow+redi", 1, 30.0, 5.0, 16_000, 1.0)
    base, redi = costs(TRAIN, second, TEACH, REDI, *taught, distilled)["pairflow"]
    assert (base.seconds, base.device_seconds, base.peak_memory_mb) == (150.0, 280.0, 600.0)
    assert (redi.seconds, redi.samples_seen) == (60.0, 16_000)
    assert redi.share == 0.4


def test_what_is_unknown_is_in_no_sum_and_leaves_the_other_seeds(costs):
    unknown = ("teach", "pairflow+redi", 0, None, None, None, None)
    *_, redi = costs(TRAIN, unknown, REDI)["pairflow"]
    assert np.isnan([redi.seconds, redi.device_seconds, redi.share]).all()
    assert redi.samples_seen == 16_000
    *_, redi = costs(TRAIN, TEACH, REDI, ("teach", "pairflow+redi", 1, None, None, None, None))["pairflow"]
    assert redi.seconds == 80.0
    base, pairing = costs(("train", "pairflow", 0, None, None, None, None), PAIR)["pairflow"]
    assert np.isnan([base.seconds, base.samples_seen, base.share, pairing.share]).all()
    assert pairing.seconds == 5.0


def test_timings_without_columns_of_two_devices_and_of_no_training(costs, experiment):
    few = pd.DataFrame({"step": ["train"], "method": ["udlm"], "seconds": [3.0]})
    [base] = training_costs(few, experiment)["udlm"]
    assert (base.seconds, base.share, base.device) == (3.0, 1.0, "")
    assert np.isnan([base.device_seconds, base.samples_seen, base.peak_memory_mb]).all()
    both = timings(TRAIN, TEACH, REDI, REDI).assign(device=["cpu", "cuda", "cpu", "cuda"])
    assert [cost.device for cost in training_costs(both, experiment)["pairflow"]] == ["cpu", "cuda and cpu"]
    assert costs(PAIR, ("sample", "pairflow", 0, 1.0, 1.0, None, 1.0)) == {}
    assert training_costs(timings().iloc[:0], experiment) == {}
