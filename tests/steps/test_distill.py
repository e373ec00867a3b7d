"""Distilling as a user does it: a parent, its pairs, and the models that come of them."""

import numpy as np
import pytest
import torch

from pairflow import rng
from pairflow.artifacts import digest, read_table, token_array
from pairflow.config import DISTILLATIONS
from pairflow.flow.plan import SamplingPlan
from pairflow.training.model import Model

DCD = {"name": "dcd", "teacher_every": 2}
REDI = {"name": "redi"}
# A distillation that has no settings without a default needs no entry.
NEEDED = {how["name"]: how for how in (DCD, REDI)}
DISCRETE = {name: settings for name, settings in DISTILLATIONS.items() if settings.flow == "discrete"}


@pytest.fixture
def pairs(udlm, teach):
    """The working directory with a model in udlm and its pairs.parquet."""
    assert teach().exit_code == 0
    return udlm


def test_redi_pairs_are_sources_and_the_teachers_samples_of_them(udlm, teach):
    assert teach(count=1030).exit_code == 0  # two batches
    pairs, metadata = read_table(udlm / "pairs.parquet", "pairs")
    x0, x1 = (torch.from_numpy(token_array(pairs[name]).astype(np.int64)) for name in ("x0", "x1"))
    assert len(x0) == 1030
    teacher = Model.load(udlm / "udlm")
    assert metadata.inputs == {"model": teacher.weights}
    corruption = teacher.corruption
    generator = torch.Generator().manual_seed(rng.stream_seed(0, "pairs", "udlm+redi", 1024))
    source = corruption.source((6, 8), generator)
    assert torch.equal(x0[1024:], source)
    plan = SamplingPlan(sampler="euler", steps=3, prediction="leave_one_out")
    expected = corruption.sample(teacher.network, source, plan, generator)
    assert torch.equal(x1[1024:], expected)


def test_rounds_draw_other_pairs_and_a_seed_the_same(udlm, teach):
    for out, seed in (("a.parquet", 0), ("b.parquet", 0), ("c.parquet", 1)):
        assert teach(out=out, seed=seed).exit_code == 0
    first, again, other = (digest(udlm / f"{name}.parquet") for name in "abc")
    assert first == again != other
    assert rng.stream_seed(0, "pairs", "udlm+redi", 0) != rng.stream_seed(0, "pairs", "udlm+redi+redi", 0)


@pytest.mark.parametrize("start", ["ema", "raw"])
def test_a_distilled_model_starts_from_its_parents_weights(pairs, distill, start):
    run = distill("udlm+redi", {**REDI, "learning_rate": 1e-30, "start_from": start}, "pairs.parquet")
    assert run.exit_code == 0
    parent, child = Model.load(pairs / "udlm", which=start), Model.load(pairs / "udlm+redi", which="raw")
    for name, tensor in parent.network.state_dict().items():
        assert torch.equal(tensor, child.network.state_dict()[name])
    assert (child.method, child.inputs["parent"]) == ("udlm+redi", parent.weights)
    assert child.training == parent.training
    assert child.distillation["start_from"] == start


def test_an_inherited_average_keeps_the_decay_of_the_base(token_rows, train, teach, distill):
    """The base's is 0.01: its average is the latest weights but for a hundredth of the step before."""
    assert train("udlm", ema_decay=0.01).exit_code == 0
    assert teach().exit_code == 0
    gaps = {}
    for ema in ("fresh", "inherit"):
        assert distill("udlm+redi", {**REDI, "ema": ema}, "pairs.parquet", name=ema).exit_code == 0
        networks = (Model.load(token_rows / ema, which=which).network for which in ("raw", "ema"))
        raw, averaged = (torch.nn.utils.parameters_to_vector(network.parameters()) for network in networks)
        gaps[ema] = float((raw - averaged).detach().norm())
    assert 0 < gaps["inherit"] < 0.1 * gaps["fresh"]


@pytest.mark.parametrize("distillation", DISCRETE)  # test_vectors.py has the others
def test_equal_runs_give_equal_bytes_and_other_weights_than_the_parents(pairs, distill, distillation):
    how = NEEDED.get(distillation, {"name": distillation})
    data = "pairs.parquet" if DISCRETE[distillation].on_pairs else "train.parquet"
    for name in ("one", "two"):
        assert distill(f"udlm+{distillation}", how, data, name=name).exit_code == 0
    one, two, parent = (digest(pairs / name / "model.safetensors") for name in ("one", "two", "udlm"))
    assert one == two != parent
    log, _ = read_table(pairs / "one/log.parquet", "training log")
    assert log["iteration"].to_pylist()[-1] == 4
    assert np.isfinite(log["loss"].to_numpy()).all()


@pytest.mark.parametrize(
    ("method", "how", "data", "parent", "text"),
    [
        ("random+dcd", DCD, "train", "udlm", "a model of udlm, but random+dcd needs random"),
        ("udlm+redi", REDI, "train", "udlm", "train.parquet: holds tokens, expected pairs"),
        ("udlm+dcd", DCD, "pairs", "udlm", "pairs.parquet: holds pairs, expected tokens"),
    ],
)
def test_what_does_not_fit_ends_in_one_line(pairs, distill, refused, method, how, data, parent, text):
    refused(distill(method, how, f"{data}.parquet", parent=parent, name="new"), "distill", text)
    assert not (pairs / "new").exists()


def test_pairs_of_another_model_are_refused(pairs, teach, distill, refused):
    assert distill("udlm+redi", REDI, "pairs.parquet").exit_code == 0
    run = distill("udlm+redi+redi", REDI, "pairs.parquet")
    refused(run, "distill", "pairs.parquet: these pairs were not made by the model in udlm+redi")
    run = teach("random+redi", model="udlm", out="other.parquet")
    refused(run, "teach", "udlm: a model of udlm, but random+redi needs random")
