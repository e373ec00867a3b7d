"""The device on which a step runs."""

import torch

from pairflow.artifacts import Provenance
from pairflow.errors import InputError
from pairflow.runtime import distributed, gpus
from pairflow.runtime.threads import say_once, useful_threads

DEVICES = ("auto", "cuda", "cpu")


def choose(name: str, threads: int | None, provenance: Provenance | None = None) -> torch.device:
    """Choose the device that `--device` names: `auto` is CUDA if there is a GPU, else the CPU.

    Of several GPUs it takes one that no other step uses, if possible. `threads` limits the CPU threads of all
    processes of the step together, which are one per CPU at most. `provenance` records the device and, on a
    CPU, the threads.
    """
    if name not in DEVICES:
        raise InputError(f"device: expected one of {', '.join(DEVICES)}; found {name!r}")
    if threads or torch.get_num_threads() > useful_threads(None):  # torch does not know of quotas
        torch.set_num_threads(max(1, useful_threads(threads) // distributed.local_world_size()))
    if name != "cpu":
        gpus.take()
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch sees no CUDA device")
    device = torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
    if name == "auto" and device.type == "cpu" and gpus.visible() and not distributed.rank():
        say_once("torch cannot use the GPU, so the CPU is used; `pairflow doctor` on this machine says why")
    if provenance:
        provenance.device = str(device)
        provenance.threads = torch.get_num_threads() if device.type == "cpu" else None
    return device
