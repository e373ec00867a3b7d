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
    assert small.network.blocks <= SHIPPED[name].network.blocks
    assert small.training.iterations == max(10, round(share * SHIPPED[name].training.iterations))


def test_a_hundredth_of_the_papers_qm9():
    small = check(Experiment, scaled(SHIPPED["qm9"], 0.01, 127_190), "qm9")
    assert small.description == "QM9 with the protocol of the paper; a quick try at 1 % of its sizes"
    assert small.seeds == (0,)
    assert small.data.training_rows == 20_000
    training, dcd, redi = small.training, small.distillation.dcd, small.distillation.redi
    assert (training.iterations, training.warmup_iterations, training.validate_every) == (500, 10, 50)
    assert (training.batch_size, training.learning_rate) == (64, 3e-4)
    network = small.network  # heads stay 64 wide
    assert (network.width, network.heads, network.blocks, network.time_width) == (128, 2, 4, 128)
    assert (dcd.iterations, dcd.teacher_every) == (100, 20)
    assert (redi.iterations, redi.pairs.count, redi.pairs.steps) == (100, 1000, 256)
    main = small.evaluations["main"]
    assert (main.samples, main.trials, main.nfe) == (64, 10, (1, 2, 4, 8, 16, 32, 64))
    assert (small.correlation.sources, small.correlation.samples) == (200, 10)


def test_small_data_stay_whole():
    small = check(Experiment, scaled(SHIPPED["demo"], 0.05, 7561), "demo")
    assert small.data == SHIPPED["demo"].data
    assert small.network == SHIPPED["demo"].network


def test_a_start_has_the_key_that_files_give_it():
    values = scaled(SHIPPED["demo"].model_copy(update={"parent": "zinc250k"}), 0.5, 7561)
    assert (values["from"], "parent" in values) == ("zinc250k", False)


def test_half_of_a_network_fits_its_heads_and_its_groups():
    for name, sizes in {"qm9": {"width": 384, "heads": 6, "blocks": 6}, "cifar10": {"channels": 64}}.items():
        network = check(Experiment, scaled(SHIPPED[name], 0.5, 50_000), name).network
        assert network.model_dump().items() >= sizes.items()
