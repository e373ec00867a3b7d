"""A progress bar for the steps that draw samples."""

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def bar_of(network, rows: int, calls: int, quiet: bool) -> Iterator[None]:
    """A bar of the rows that pass through the network, so that it moves within a batch of many steps, too.

    `rows` samples take `calls` each at most: absorbing noise asks less often.
    """
    with tqdm(total=rows * calls, unit="row", unit_scale=True, disable=quiet, mininterval=1.0) as bar:

        def count(module, inputs, output) -> None:  # what a hook returns would replace the output
            bar.update(len(inputs[0]))

        hook = network.register_forward_hook(count)
        try:
            yield
        finally:
            hook.remove()
