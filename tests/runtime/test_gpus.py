"""Which GPU a step takes, on a mock of a machine with some: a command `nvidia-smi` that lists them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from pairflow.errors import InputError
from pairflow.runtime import gpus, threads
from pairflow.runtime.device import choose

HOLD = """
import os, sys
from pairflow.runtime import gpus
gpus.reserve(int(sys.argv[1]))
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Gives this process and those that it starts a mock of some GPUs, and a temporary folder of its own."""

    def with_gpus(count: int) -> None:
        command = tmp_path / "nvidia-smi"
        command.write_text(f"#!/bin/sh\nfor i in $(seq {count}); do echo GPU-$i; done\n")
        command.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # so that what a test makes of it is undone
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(gpus.tempfile, "tempdir", None)
    monkeypatch.setattr(gpus, "_locks", [])
    return with_gpus


class Holder:
    """Another process that holds GPUs until it is closed or killed."""

    def __init__(self, count: int = 1):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", HOLD, str(count)], **pipes)
        self.gpus = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_steps_side_by_side_hold_different_mock_gpus(machine):
    machine(3)
    holders = [Holder() for _ in range(3)]
    assert {holder.gpus for holder in holders} == {"GPU-1", "GPU-2", "GPU-3"}
    holders[1].kill()  # its GPU is free at once, whatever ended it
    gpus.take()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == holders[1].gpus
    for holder in holders[::2]:
        holder.kill()


def test_a_step_of_several_processes_holds_several_mock_gpus_and_the_next_shares_the_least_held(machine):
    machine(3)
    two, one = Holder(2), Holder()
    assert (two.gpus, one.gpus) == ("GPU-1,GPU-2", "GPU-3")
    gpus.reserve(1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    two.kill()
    one.kill()


@pytest.mark.promise("locks", times=2)
def test_a_pipe_or_a_link_in_place_of_a_lock_stops_nobody_and_is_not_followed(machine, tmp_path, capsys):
    machine(2)
    os.mkfifo(tmp_path / "pairflow-gpu-GPU-1-0.lock")
    (tmp_path / "pairflow-gpu-GPU-2-0.lock").symlink_to(tmp_path / "victim")
    gpus.take()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-1"  # as its second holder
    assert not (tmp_path / "victim").exists()
    first, second = capsys.readouterr().err.splitlines()
    held = "it counts as a lock that another step holds"
    assert first == f"pairflow: note: {tmp_path}/pairflow-gpu-GPU-1-0.lock: not a regular file; {held}"
    assert second.startswith(f"pairflow: note: {tmp_path}/pairflow-gpu-GPU-2-0.lock: Too many levels")


@pytest.mark.promise("locks", times=2)
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("mode", "gpu"), [(0o600, "GPU-2"), (0o644, "GPU-1")])
def test_the_lock_of_another_user_stops_no_step(monkeypatch, mode, gpu):
    """A private one counts as held; one that others can read is shared with them."""
    with tempfile.TemporaryDirectory() as name:  # not pytest's, which only its user may enter
        folder = Path(name)
        folder.chmod(0o777)
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(gpus.tempfile, "tempdir", None)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2")
        lock = folder / "pairflow-gpu-GPU-1-0.lock"
        lock.touch()
        lock.chmod(mode)
        if not (child := os.fork()):
            try:
                os.setuid(65534)
                gpus.reserve(1)
                (folder / "taken").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert (folder / "taken").read_text() == gpu


def test_a_scheduler_that_names_the_mock_gpus_is_obeyed(machine, monkeypatch):
    machine(8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7")
    assert gpus.visible() == ["5", "7"]
    gpus.reserve(2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5, 7"
    gpus.reserve(1)  # both are held, once
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
    for none in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", none)
        assert gpus.visible() == []


def test_a_mock_gpu_that_torch_cannot_use_is_said_once(machine, capsys, monkeypatch):
    monkeypatch.setattr(threads, "SAID", set())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for _ in range(2):
        assert choose("auto", None).type == "cpu"
    assert capsys.readouterr().err == ""
    machine(1)
    for _ in range(2):
        assert choose("auto", None).type == choose("cpu", None).type == "cpu"
    said = capsys.readouterr().err
    assert said.startswith("pairflow: note: torch cannot use the GPU, so the CPU is used; ")
    assert said.count("\n") == 1


def test_a_process_of_torchrun_takes_the_mock_gpu_of_its_number(machine, monkeypatch):
    machine(2)
    for name, value in {"TORCHELASTIC_RUN_ID": "a", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    gpus.take()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-2"


def test_more_processes_than_mock_gpus_are_refused(machine):
    machine(2)
    with pytest.raises(InputError, match=r"^3 processes need one GPU each, but 2 are visible$"):
        gpus.reserve(3)
