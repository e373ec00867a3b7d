"""A training by two processes: stopped, killed, resumed by another number of them; a mistake is one line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from pairflow.artifacts import Metadata, read_provenance, read_table, token_column, write_table

NETWORK = {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8, "dropout": 0.1}
TRAINING = {
    "batch_size": 15,
    "iterations": 200,
    "learning_rate": 1e-3,
    "validate_every": 50,
    "ema_decay": 0.9,
}
TORCHRUN = ("pairflow.runtime.launch", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Token rows for training and validation."""
    folder = tmp_path_factory.mktemp("several")
    tokens = np.random.default_rng(0).integers(0, 5, (200, 8), np.uint8)
    metadata = Metadata(kind="tokens", length=8, vocabulary_size=5, vocabulary="five")
    for name, part in (("train", tokens[:160]), ("validation", tokens[160:])):
        write_table(folder / f"{name}.parquet", pa.table({"tokens": token_column(part, 5)}), metadata)
    return folder


def start(folder: Path, name: str, *launcher: str, save_every: int = 1000, **changes):
    """A training of this name, by `launcher` or plainly."""
    settings = {"method": "udlm", "network": NETWORK, "training": {**TRAINING, **changes}}
    flags = {
        "--settings": json.dumps(settings),
        "--data": folder / "train.parquet",
        "--validation": folder / "validation.parquet",
        "--model": folder / name / "model.safetensors",
        "--description": folder / name / "model.json",
        "--log": folder / name / "log.parquet",
        "--resume": folder / name / "states",
        "--save-every": save_every,
        "--threads": 2,
    }
    pieces = [str(piece) for pair in flags.items() for piece in pair]
    command = [sys.executable, "-m", *launcher, "pairflow.steps.train", *pieces, "--quiet"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, **pipes)


def end(run) -> tuple[int, str]:
    """Exit code and all that was said."""
    said = "".join(run.communicate())
    return run.returncode, said


def wait_for_a_state(folder: Path, name: str, run) -> None:
    """Until a state newer than those that are there is saved."""
    before = set((folder / name / "states").rglob("[0-9]*.json"))
    while not set((folder / name / "states").rglob("[0-9]*.json")) - before:
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.005)


def process_of(run, rank: int) -> int:
    """The id of one of the processes that torchrun has started."""
    for child in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise LookupError(rank)


def test_a_training_goes_on_with_any_number_of_processes(folder):
    """Two processes told to stop, two of which one is killed, one told to stop, and two that end it."""
    assert end(start(folder, "calm")) == (0, "")

    for launcher, number in ((TORCHRUN, signal.SIGTERM), (TORCHRUN, signal.SIGKILL), ((), signal.SIGTERM)):
        run = start(folder, "moved", *launcher, save_every=0)
        wait_for_a_state(folder, "moved", run)
        os.kill(process_of(run, rank=1) if number == signal.SIGKILL else run.pid, number)
        code, said = end(run)
        if number == signal.SIGKILL:
            assert (code, said) == (1, "process 1 of 2 was ended by SIGKILL\n")
        else:
            assert code == 128 + signal.SIGTERM
            assert said.startswith("pairflow train: stopped after ")
            assert said.endswith(" of 200 iterations, which are saved: rerun the same command to resume\n")
            assert said.count("\n") == 1
        assert not list((folder / "moved").glob("model.*"))

    assert end(start(folder, "moved", *TORCHRUN)) == (0, "")
    assert not (folder / "moved/states").exists()
    provenance = read_provenance(folder / "moved/model.safetensors")
    assert provenance["devices"] == 2
    assert provenance["device_seconds"] > 0
    found, calm = (load_file(folder / name / "model.safetensors") for name in ("moved", "calm"))
    torch.testing.assert_close(found, calm, rtol=0, atol=2e-3)  # the way is 0.2 long
    found, calm = (read_table(folder / name / "log.parquet")[0].to_pandas() for name in ("moved", "calm"))
    np.testing.assert_allclose(found.drop(columns="seconds"), calm.drop(columns="seconds"), rtol=2e-3)


def test_a_mistake_that_all_processes_make_is_told_once(folder):
    code, said = end(start(folder, "tiny", *TORCHRUN, batch_size=1))
    assert said == "pairflow train: error: batch_size: 1 rows are too few for 2 processes\n"
    assert code == 2
    assert not (folder / "tiny").exists()
