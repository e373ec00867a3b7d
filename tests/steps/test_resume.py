"""A training or distillation that is killed or stopped ends, run again, in the bytes of one that was not."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

from pairflow.artifacts import Metadata, read_provenance, token_column, write_table

NETWORK = {"name": "mlp", "width": 32, "blocks": 1, "time_width": 16, "dropout": 0.1}
TRAINING = {
    "batch_size": 16,
    "iterations": 300,
    "learning_rate": 0.01,
    "validate_every": 100,
    "ema_decay": 0.9,
}
DCD = {**TRAINING, "name": "dcd", "iterations": 120, "teacher_every": 40}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Token rows for training and validation, and an undisturbed udlm and its distillation."""
    folder = tmp_path_factory.mktemp("resume")
    tokens = np.random.default_rng(0).integers(0, 5, (200, 8), np.uint8)
    metadata = Metadata(kind="tokens", length=8, vocabulary_size=5, vocabulary="five")
    for name, part in (("train", tokens[:160]), ("validation", tokens[160:])):
        write_table(folder / f"{name}.parquet", pa.table({"tokens": token_column(part, 5)}), metadata)
    for step in ("train", "distill"):
        finish(start(step, folder, "calm"))
    return folder


def command(step, folder, name, **changes):
    model = {"train": f"{name}/udlm", "distill": f"{name}/udlm+dcd"}[step]
    settings = {
        "train": {"method": "udlm", "network": NETWORK, "training": {**TRAINING, **changes}},
        "distill": {"method": "udlm+dcd", "distillation": {**DCD, **changes}},
    }[step]
    flags = {
        "--settings": json.dumps(settings),
        "--data": folder / "train.parquet",
        "--validation": folder / "validation.parquet",
        "--model": folder / model / "model.safetensors",
        "--description": folder / model / "model.json",
        "--log": folder / model / "log.parquet",
        "--resume": folder / name / "states",
        "--threads": 1,
    }
    if step == "distill":
        flags |= {"--parent": folder / "calm" / "udlm", "--cache": folder / "cache"}
    pieces = [str(piece) for pair in flags.items() for piece in pair]
    return [sys.executable, "-m", f"pairflow.steps.{step}", *pieces, "--quiet"]


def start(step, folder, name, *options, **changes):
    return subprocess.Popen(
        [*command(step, folder, name, **changes), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(run) -> None:
    _, errors = run.communicate()
    assert (run.returncode, errors) == (0, "")


def wait_for_a_state(folder, name, run) -> None:
    """Until a state newer than those that are there is saved."""
    before = set((folder / name / "states").rglob("*.json"))
    while not set((folder / name / "states").rglob("[0-9]*.json")) - before:
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.005)


def products(folder, name, step):
    model = folder / name / {"train": "udlm", "distill": "udlm+dcd"}[step]
    return (model / "model.safetensors").read_bytes(), (model / "model.json").read_bytes()


@pytest.mark.parametrize("step", ["train", "distill"])
def test_a_killed_step_ends_in_the_bytes_of_an_undisturbed_one(folder, step):
    """Killed at three random moments after it has saved something new."""
    name, moments = f"killed {step}", np.random.default_rng(1).uniform(0, 0.1, 3)
    for moment in moments:
        run = start(step, folder, name, "--save-every", "0")
        wait_for_a_state(folder, name, run)
        time.sleep(moment)
        run.kill()
        run.communicate()
        assert run.returncode == -signal.SIGKILL
    assert not list((folder / name).rglob("model.*"))
    spent = read_provenance(next((folder / name / "states").iterdir()) / "spent")["seconds"]
    finish(start(step, folder, name))
    assert products(folder, name, step) == products(folder, "calm", step)
    assert not (folder / name / "states").exists()
    last = next((folder / name).rglob("model.safetensors"))
    assert read_provenance(last)["seconds"] > spent > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_training_says_so_and_goes_on(folder, number):
    name = f"stopped {number.name}"
    run = start("train", folder, name, "--save-every", "0")
    wait_for_a_state(folder, name, run)
    run.send_signal(number)
    _, errors = run.communicate()
    assert run.returncode == 128 + number
    assert errors.startswith("pairflow train: stopped after ")
    assert errors.endswith("of 300 iterations, which are saved: rerun the same command to resume\n")
    finish(start("train", folder, name))
    assert products(folder, name, "train") == products(folder, "calm", "train")


def test_other_settings_never_take_up_a_state(folder):
    name = "changed"
    run = start("train", folder, name, "--save-every", "0")
    wait_for_a_state(folder, name, run)
    run.send_signal(signal.SIGTERM)
    run.communicate()
    finish(start("train", folder, name, learning_rate=0.02))
    [left] = (folder / name / "states").iterdir()  # of the run that was stopped, for whoever goes back to it
    finish(start("train", folder, "alone", learning_rate=0.02))
    assert products(folder, name, "train") == products(folder, "alone", "train")
    assert products(folder, name, "train") != products(folder, "calm", "train")
    assert left.name.startswith("udlm-")
