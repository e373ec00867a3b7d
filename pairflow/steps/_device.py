"""Where a step runs."""

import torch

from pairflow.errors import InputError


def choose(name: str, threads: int | None) -> torch.device:
    """`auto` is CUDA if there is one, else the CPU; `threads` bounds the CPU's share."""
    if threads:
        torch.set_num_threads(threads)
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: no CUDA device is visible to torch")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda")
