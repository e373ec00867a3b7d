"""A progress bar for the steps that draw samples."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from tqdm import tqdm


@contextmanager
def network_bar(network: nn.Module, calls: int, quiet: bool, rows: int) -> Iterator[None]:
    """A bar that counts the rows that pass through the network, so that it also moves within a batch.

    Each of `rows` samples takes at most `calls` calls; absorbing noise needs fewer.
    """
    with tqdm(total=rows * calls, unit="row", unit_scale=True, disable=quiet, mininterval=1.0) as bar:

        def count(module: nn.Module, inputs: tuple, output: object) -> None:  # returns None: keeps the output
            bar.update(len(inputs[0]))

        hook = network.register_forward_hook(count)
        try:
            yield
        finally:
            hook.remove()
