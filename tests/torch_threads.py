"""PyTorch's number of CPU threads, which a test must leave as it found it."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def threads_restored(count: int | None = None) -> Iterator[None]:
    """Begin with `count` threads (None: as many as there are), and restore the number at the end."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(count or before)
        yield
    finally:
        torch.set_num_threads(before)
