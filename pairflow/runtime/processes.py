"""Which of several processes this one is, where torchrun has started them to train a model together."""

import os


def world_size() -> int:
    """Processes that work together; 1 where torchrun has started none."""
    return _number("WORLD_SIZE", 1)


def rank() -> int:
    """The number of this one among them, from 0: it alone writes files and talks."""
    return _number("RANK", 0)


def local_world_size() -> int:
    """Those of them on this machine."""
    return _number("LOCAL_WORLD_SIZE", 1)


def local_rank() -> int:
    """The number of this one among those on this machine."""
    return _number("LOCAL_RANK", 0)


def _number(name: str, alone: int) -> int:
    return int(os.environ[name]) if "TORCHELASTIC_RUN_ID" in os.environ else alone
