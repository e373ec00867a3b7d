"""Distilling as a user does it: a parent, its pairs, and the models that come of them."""

import importlib
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from pairflow.artifacts import digest, read_table, token_array
from pairflow.training.model import Model

NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 16}
RUN = {"batch_size": 8, "iterations": 4, "learning_rate": 1e-2, "validate_every": 2}
DCD = {"name": "dcd", "teacher_every": 2, **RUN}
REDI = {"name": "redi", **RUN}
N, K = 5, 6


@pytest.fixture
def folder(token_file, tmp_path):
    """Token rows, and a udlm trained on them for a moment."""
    rng = np.random.default_rng(0)
    token_file("train.parquet", rng.integers(0, K, (60, N)), K)
    token_file("validation.parquet", rng.integers(0, K, (20, N)), K)
    return tmp_path


@pytest.fixture
def step(folder, monkeypatch):
    """Run a step in this process on the files of the folder, which it names by themselves."""
    monkeypatch.chdir(folder)

    def run(name, **options):
        flags = [str(item) for key, value in options.items() for item in (f"--{key}", value)]
        main = importlib.import_module(f"pairflow.steps.{name}").main
        return CliRunner().invoke(main, ["--quiet", *flags])

    return run


def outputs(name):
    return {
        "model": f"{name}/model.safetensors",
        "description": f"{name}/model.json",
        "log": f"{name}/log.parquet",
        "validation": "validation.parquet",
        "threads": 1,
    }


@pytest.fixture
def train(step):
    def run(method, **training):
        settings = json.dumps({"method": method, "network": NETWORK, "training": RUN | training})
        finished = step("train", settings=settings, data="train.parquet", **outputs(method))
        assert finished.exit_code == 0, finished.stderr

    return run


@pytest.fixture
def distill(step):
    def run(method, how, data, parent=None, name=None):
        settings = json.dumps({"method": method, "distillation": how})
        parent = parent or method.rpartition("+")[0]
        files = {"parent": parent, "data": data, **outputs(name or method)}
        return step("distill", settings=settings, cache="cache", **files)

    return run


@pytest.fixture
def teach(step):
    def run(method, out="pairs.parquet", model=None, **settings):
        given = {"method": method, "count": 30, "steps": 3, **settings}
        return step("teach", settings=json.dumps(given), model=model or method.rpartition("+")[0], out=out)

    return run


def test_redi_pairs_are_sources_and_the_teachers_samples_of_them(train, teach, folder):
    train("udlm")
    run = teach("udlm+redi", count=1030)  # two batches
    assert run.exit_code == 0, run.stderr
    pairs, metadata = read_table(folder / "pairs.parquet", "pairs")
    x0, x1 = (torch.from_numpy(token_array(pairs[name]).astype(np.int64)) for name in ("x0", "x1"))
    assert len(x0) == 1030
    teacher = Model.load(folder / "udlm")
    assert metadata.inputs == {"model": teacher.weights}
    corruption = teacher.corruption
    generator = torch.Generator().manual_seed(first_seed("udlm+redi", 1024))
    source = corruption.source((6, N), generator)
    assert torch.equal(x0[1024:], source)
    drawn = corruption.samplers["euler"](
        corruption.denoiser(teacher.network), source, steps=3, prediction="leave_one_out", generator=generator
    )
    assert torch.equal(x1[1024:], drawn)


def first_seed(method, first):
    from pairflow import rng

    return rng.stream_seed(0, "pairs", method, first)


def test_rounds_draw_other_pairs_and_a_seed_the_same(train, teach, folder):
    train("udlm")
    names = {}
    for out, seed in (("a.parquet", 0), ("b.parquet", 0), ("c.parquet", 1)):
        assert teach("udlm+redi", out=out, seed=seed).exit_code == 0
        names[out] = digest(folder / out)
    assert names["a.parquet"] == names["b.parquet"] != names["c.parquet"]
    assert first_seed("udlm+redi", 0) != first_seed("udlm+redi+redi", 0)


@pytest.mark.parametrize("start", ["ema", "raw"])
def test_a_distilled_model_starts_from_its_parents_weights(train, teach, distill, folder, start):
    train("udlm")
    assert teach("udlm+redi").exit_code == 0
    still = {**REDI, "learning_rate": 1e-30, "start_from": start}
    run = distill("udlm+redi", still, "pairs.parquet")
    assert run.exit_code == 0, run.stderr
    parent = Model.load(folder / "udlm", which=start)
    child = Model.load(folder / "udlm+redi", which="raw")
    for name, tensor in parent.network.state_dict().items():
        assert torch.equal(tensor, child.network.state_dict()[name])
    assert child.method == "udlm+redi"
    assert child.inputs["parent"] == parent.weights
    assert child.training == parent.training
    assert child.distillation["start_from"] == start


def test_an_inherited_average_keeps_the_decay_of_the_base(train, teach, distill, folder):
    """The base's is 0.01: its average is the latest weights but for a hundredth of the step before."""
    train("udlm", ema_decay=0.01)
    assert teach("udlm+redi").exit_code == 0
    gaps = {}
    for ema in ("fresh", "inherit"):
        run = distill("udlm+redi", {**REDI, "ema": ema}, "pairs.parquet", name=ema)
        assert run.exit_code == 0, run.stderr
        raw, averaged = (
            torch.nn.utils.parameters_to_vector(Model.load(folder / ema, which=which).network.parameters())
            for which in ("raw", "ema")
        )
        gaps[ema] = float((raw - averaged).detach().norm())
    assert 0 < gaps["inherit"] < 0.1 * gaps["fresh"]


@pytest.mark.parametrize(("how", "data"), [(DCD, "train.parquet"), (REDI, "pairs.parquet")])
def test_equal_runs_give_equal_bytes_and_other_weights_than_the_parents(
    train, teach, distill, folder, how, data
):
    train("udlm")
    method = f"udlm+{how['name']}"
    assert teach("udlm+redi").exit_code == 0
    for name in ("one", "two"):
        run = distill(method, how, data, name=name)
        assert run.exit_code == 0, run.stderr
    one, two = (digest(folder / name / "model.safetensors") for name in ("one", "two"))
    assert one == two != digest(folder / "udlm/model.safetensors")
    log, _ = read_table(folder / "one/log.parquet", "training log")
    assert log["iteration"].to_pylist()[-1] == 4
    assert np.isfinite(log["loss"].to_numpy()).all()


def test_what_does_not_fit_ends_in_one_line(train, teach, distill, folder):
    train("udlm")
    train("mdlm")
    assert teach("udlm+redi").exit_code == 0
    for method, how, data, parent, text in [
        ("udlm", DCD, "train.parquet", "udlm", "method 'udlm': names no distillation, as in 'udlm+dcd'"),
        ("udlm+redi", DCD, "train.parquet", "udlm", "distillation is redi, but the settings are for dcd"),
        ("random+dcd", DCD, "train.parquet", "udlm", "a model of udlm, but random+dcd needs random"),
        (
            "mdlm+dcd",
            DCD,
            "train.parquet",
            "mdlm",
            "mdlm starts from masks, and no distillation supports that",
        ),
        ("udlm+redi", REDI, "train.parquet", "udlm", "train.parquet: holds tokens, expected pairs"),
        ("udlm+dcd", DCD, "pairs.parquet", "udlm", "pairs.parquet: holds pairs, expected tokens"),
    ]:
        run = distill(method, how, data, parent=parent)
        assert run.exit_code == 2, run.stderr
        assert text in run.stderr.splitlines()[-1]
        assert not (folder / method / "model.json").exists() or method == "udlm"
    run = teach("random+redi", model="udlm", out="other.parquet")
    assert run.exit_code == 2
    assert "udlm: a model of udlm, but random+redi needs random" in run.stderr


def test_pairs_of_another_model_are_refused(train, teach, distill, folder):
    train("udlm")
    assert teach("udlm+redi").exit_code == 0
    assert distill("udlm+redi", REDI, "pairs.parquet").exit_code == 0
    run = distill("udlm+redi+redi", REDI, "pairs.parquet")
    assert run.exit_code == 2
    assert "pairs.parquet: these pairs were not made by the model in udlm+redi" in run.stderr


def test_help_lists_the_keys_of_every_distillation():
    text = CliRunner().invoke(importlib.import_module("pairflow.steps.distill").main, ["--help"]).output
    assert """--distillation '{"name": "dcd", ...}'""" in text
    assert "teacher_every: Iterations after which the teacher is replaced by the student." in text
    assert "start_from: Weights of the parent to start from: the moving average or the raw weights." in text
