"""A step that is killed or stopped ends, when it is run again, in the bytes of one that was not."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from pairflow.artifacts import Metadata, read_provenance, token_column, write_table
from pairflow.flow.corruption import Uniform
from pairflow.pairing import blocks
from pairflow.runtime.resume import BlockwiseWork
from pairflow.steps import cover

NETWORK = {"name": "mlp", "width": 32, "blocks": 1, "time_width": 16, "dropout": 0.1}
TRAINING = {"batch_size": 15, "iterations": 300, "learning_rate": 1e-3, "validate_every": 100}
TRAINING["ema_decay"] = 0.9
DCD = {**TRAINING, "name": "dcd", "iterations": 120, "teacher_every": 40}
TORCHRUN = ("pairflow.runtime.launch", "2")
METHODS = {"train": "udlm", "distill": "udlm+dcd"}


class Forked:
    """A process of the fixture `fork`, with what these tests use of `subprocess.Popen`."""

    def __init__(self, process, errors: Path):
        self.process, self.errors, self.pid = process, errors, process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def communicate(self) -> tuple[str, str]:
        self.process.join()
        return "", self.errors.read_text()


@pytest.fixture(scope="module")
def start(fork):
    """Start a training or distillation of a name, by a launcher or plainly."""

    def start(step, folder, name, *launcher, save_every=1000, options=(), **changes):
        settings = {"distillation": DCD | changes}
        if step == "train":
            settings = {"network": NETWORK, "training": TRAINING | changes}
        model = folder / name / METHODS[step]
        flags = {
            "--settings": json.dumps({"method": METHODS[step], **settings}),
            "--data": folder / "train.parquet",
            "--validation": folder / "validation.parquet",
            "--model": model / "model.safetensors",
            "--description": model / "model.json",
            "--log": model / "log.parquet",
            "--resume": folder / name / "states",
            "--save-every": save_every,
            "--threads": 2 if launcher else 1,
            "--device": "cpu",
        }
        if step == "distill":
            flags |= {"--parent": folder / "calm" / "udlm"}
        pieces = [*(str(piece) for piece in (*itertools.chain(*flags.items()), *options)), "--quiet"]
        if launcher:
            command = [sys.executable, "-m", *launcher, f"pairflow.steps.{step}", *pieces]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        errors = folder / f"{name}.txt"
        errors.write_text("")
        return Forked(fork([step, *pieces], folder, errors), errors)

    return start


@pytest.fixture(scope="module")
def folder(tmp_path_factory, start):
    """Token rows for training and validation, and an undisturbed udlm and its distillation."""
    folder = tmp_path_factory.mktemp("resume")
    tokens = np.random.default_rng(0).integers(0, 5, (200, 8), np.uint8)
    metadata = Metadata(kind="tokens", length=8, vocabulary_size=5, vocabulary="five")
    for name, part in (("train", tokens[:160]), ("validation", tokens[160:])):
        write_table(folder / f"{name}.parquet", pa.table({"tokens": token_column(part, 5)}), metadata)
    for step in METHODS:
        finish(start(step, folder, "calm"))
    return folder


def end(run) -> tuple[int, str]:
    """Exit code and all that was said."""
    said = "".join(run.communicate())
    return run.returncode, said


def finish(run) -> None:
    assert end(run) == (0, "")


def stop(run, folder, name, number) -> tuple[int, str]:
    """Stop a training by a signal once it has saved a state."""
    wait_for_a_state(folder, name, run)
    os.kill(run.pid, number)
    return end(run)


def wait_for_a_state(folder, name, run) -> None:
    """Until a state newer than those that are there is saved."""
    before = set((folder / name / "states").rglob("[0-9]*.state"))
    while not set((folder / name / "states").rglob("[0-9]*.state")) - before:
        assert run.returncode is None, end(run)
        time.sleep(0.005)


def products(folder, name, step):
    model = folder / name / METHODS[step]
    return (model / "model.safetensors").read_bytes(), (model / "model.json").read_bytes()


def assert_stopped(code, said, number):
    assert code == 128 + number
    assert said.startswith("pairflow train: stopped after ")
    assert said.endswith(" of 300 iterations, which are saved: rerun the same command to resume\n")
    assert said.count("\n") == 1


@pytest.mark.promise("signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_training_says_so_and_goes_on(folder, start, number):
    name = f"stopped {number.name}"
    assert_stopped(*stop(start("train", folder, name, save_every=0), folder, name, number), number)
    finish(start("train", folder, name))
    assert products(folder, name, "train") == products(folder, "calm", "train")


@pytest.mark.promise("state")
def test_other_settings_never_take_up_a_state(folder, start):
    name = "changed"
    stop(start("train", folder, name, save_every=0), folder, name, signal.SIGTERM)
    for options, changes in (([], {"learning_rate": 0.02}), (["--micro-batch", 4], {})):
        finish(start("train", folder, name, options=options, **changes))
        [left] = (folder / name / "states").iterdir()  # the stopped run's, for whoever goes back to it
        assert left.name.startswith("udlm-")
        finish(start("train", folder, "undisturbed", options=options, **changes))
        assert products(folder, name, "train") == products(folder, "undisturbed", "train")


def test_a_training_ends_with_as_many_threads_as_it_began(folder, start):
    """On a machine with more cores, the workflow gives it more."""
    name = "threads"
    stop(start("train", folder, name, save_every=0), folder, name, signal.SIGTERM)
    finish(start("train", folder, name, options=["--threads", 2]))
    assert products(folder, name, "train") == products(folder, "calm", "train")
    assert read_provenance(folder / name / "udlm/model.safetensors")["threads"] == 1


def process_of(run, rank: int) -> int:
    """The id of one of the processes that torchrun has started."""
    for child in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise LookupError(rank)


def test_a_training_goes_on_with_any_number_of_processes(folder, start):
    """Two processes told to stop, two of which one is killed, one told to stop, and two that end it."""
    for launcher, number in ((TORCHRUN, signal.SIGTERM), (TORCHRUN, signal.SIGKILL), ((), signal.SIGTERM)):
        run = start("train", folder, "moved", *launcher, save_every=0)
        wait_for_a_state(folder, "moved", run)
        os.kill(process_of(run, rank=1) if number == signal.SIGKILL else run.pid, number)
        code, said = end(run)
        if number == signal.SIGKILL:
            assert (code, said) == (1, "process 1 of 2 was ended by SIGKILL\n")
        else:
            assert_stopped(code, said, number)
        assert not list((folder / "moved").rglob("model.*"))

    finish(start("train", folder, "moved", *TORCHRUN))
    assert not (folder / "moved/states").exists()
    provenance = read_provenance(folder / "moved/udlm/model.safetensors")
    assert provenance["devices"] == 2
    assert provenance["device_seconds"] > 0
    models = (folder / name / "udlm" for name in ("moved", "calm"))
    (found, log), (calm, known) = (
        (load_file(model / "model.safetensors"), pd.read_parquet(model / "log.parquet")) for model in models
    )
    torch.testing.assert_close(found, calm, rtol=0, atol=2e-3)  # the way is 0.2 long
    np.testing.assert_allclose(log.drop(columns="seconds"), known.drop(columns="seconds"), rtol=2e-3)


def test_a_mistake_that_all_processes_make_is_told_once(folder, start):
    code, said = end(start("train", folder, "tiny", *TORCHRUN, batch_size=1))
    assert said == "pairflow train: error: batch_size: 1 rows are too few for 2 processes\n"
    assert code == 2
    assert not (folder / "tiny").exists()


BLOCKWISE = {
    "sample": {"settings": {"nfe": 2, "samples": 10, "trials": 2}, "model": "udlm"},
    "teach": {"settings": {"method": "udlm+redi", "count": 22, "steps": 2}, "model": "udlm"},
    "correlate": {"sources": 10, "samples": 2, "steps": 2, "model": "udlm", "tokens": "train.parquet"},
    "pair": {"steps": 3, "tokens": "train.parquet"},
    "cover": {"steps": 3, "tokens": "train.parquet"},
}


@pytest.mark.promise("signal")
@pytest.mark.parametrize("name", BLOCKWISE)
def test_every_step_in_blocks_resumes_to_the_same_bytes(udlm, step, name, monkeypatch):
    monkeypatch.setattr(Uniform, "rows_at_once", lambda corruption, length: 4)
    for module in (blocks, cover):
        monkeypatch.setattr(module, "BLOCK", 12 * 60 * 8 * 3)  # at least five blocks

    def run(out, stop=0, number=None):
        """The step, which gets a signal during the block `stop`."""

        def make(blocks, work):
            def knocked(key):
                if number and key == blocks.keys[stop]:
                    os.kill(os.getpid(), number)
                return work(key)

            return plain(blocks, knocked)

        with monkeypatch.context() as patch:
            patch.setattr(BlockwiseWork, "run", make)
            return step(name, **BLOCKWISE[name], out=out, resume="states", quiet=True)

    plain, states = BlockwiseWork.run, udlm / "states"
    assert run("calm.parquet").exit_code == 0
    assert not states.exists()
    for stop, number in ((2, signal.SIGINT), (4, signal.SIGTERM)):
        stopped = run("knocked.parquet", stop, number)
        assert stopped.exit_code == 128 + number
        assert f"pairflow {name}: stopped after {stop} of " in stopped.stderr
        assert not (udlm / "knocked.parquet").exists()
    [saved] = states.iterdir()
    assert len(list(saved.glob("*.block"))) == 4
    spent = read_provenance(saved / "spent")["seconds"]
    assert run("knocked.parquet", 4, signal.SIGUSR1).exit_code == 0
    assert (udlm / "knocked.parquet").read_bytes() == (udlm / "calm.parquet").read_bytes()
    assert read_provenance(udlm / "knocked.parquet")["seconds"] > spent
    assert not states.exists()
