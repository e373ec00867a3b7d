"""Where a step runs."""

import torch

from pairflow.errors import InputError
from pairflow.runtime import gpus, processes


def choose(name: str, threads: int | None) -> torch.device:
    """`auto` is CUDA if there is one, else the CPU; `threads` bounds the CPU's share.

    Of several GPUs it is one that no other step holds. The processes of one step share its threads.
    """
    if threads:
        torch.set_num_threads(max(1, threads // processes.local_world_size()))
    if name != "cpu":
        gpus.take()
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: no CUDA device is visible to torch")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda")
