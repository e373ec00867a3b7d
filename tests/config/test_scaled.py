"""A smaller version of an experiment has a share of its work, and is a valid experiment."""

from pathlib import Path

import pytest

from pairflow.config import Experiment, check
from pairflow.config.file import describe, read
from pairflow.config.scaled import scaled

CONFIGURATION = Path(__file__).parents[2] / "workflow_config.yaml"
SHIPPED = read(CONFIGURATION).experiments


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("share", [0.5, 0.001])
def test_every_shipped_experiment_has_a_smaller_version(name, share):
    values = scaled(SHIPPED[name], share, 50_000)
    describe(CONFIGURATION, "small", values, "made by a test")  # InputError if it is not valid
    small = check(Experiment, values, name)
    assert small.scale == "reduced"
    assert small.methods == SHIPPED[name].methods
    assert small.network == SHIPPED[name].network
    assert small.training.iterations == max(10, round(share * SHIPPED[name].training.iterations))


def test_a_hundredth_of_the_papers_qm9():
    small = check(Experiment, scaled(SHIPPED["qm9"], 0.01, 127_190), "qm9")
    assert small.description == "QM9 with the protocol of the paper; a quick try with 1 % of the work"
    assert small.seeds == (0,)
    assert small.data.training_rows == 20_000
    training, dcd, redi = small.training, small.distillation.dcd, small.distillation.redi
    assert (training.iterations, training.warmup_iterations, training.validate_every) == (500, 10, 10)
    assert (training.batch_size, training.learning_rate) == (1024, 3e-4)
    assert (dcd.iterations, dcd.teacher_every) == (100, 20)
    assert (redi.iterations, redi.pairs.count, redi.pairs.steps) == (100, 1000, 256)
    main = small.evaluations["main"]
    assert (main.samples, main.trials, main.nfe) == (64, 10, (1, 2, 4, 8, 16, 32, 64))
    assert (small.correlation.sources, small.correlation.samples) == (200, 10)


def test_small_data_stay_whole():
    small = check(Experiment, scaled(SHIPPED["demo"], 0.05, 7561), "demo")
    assert small.data == SHIPPED["demo"].data
