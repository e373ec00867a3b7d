"""Progress bars: a line that moves in a terminal, whole lines in a log file."""

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from tqdm import tqdm

if TYPE_CHECKING:
    from torch import nn

_LINE = "{l_bar} {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"


class _LogLines:
    """A file for tqdm, to which a bar writes one line after another, instead of overwriting the same line."""

    def __init__(self, file: TextIO):
        self.file, self.count = file, ""

    def write(self, text: str) -> None:
        """Write the text as a line, unless its count (the part before "[") equals the last line's."""
        line = text.strip()
        count = line.partition("[")[0]
        if line and count != self.count:
            self.file.write(f"{line}\n")
            self.count = count

    def flush(self) -> None:
        self.file.flush()


_joint: list[tuple[str, tqdm]] = []  # what `joint_bar` shows: its name, and the bar


_called = False  # whether a Python function shows the bars, and no command


@contextmanager
def bars_of_a_function() -> Iterator[None]:
    """Show the bars in the block only after a second, and only in a terminal or a notebook.

    Also a decorator, for functions that users call in Python.
    """
    global _called
    before, _called = _called, True
    try:
        yield
    finally:
        _called = before


@contextmanager
def joint_bar(desc: str, **options: Any) -> Iterator[None]:
    """Show one bar during the block, to which all bars in it with the same name `desc` count."""
    with bar(desc=desc, **options) as shown:
        _joint.append((desc, shown))
        try:
            yield
        finally:
            _joint.pop()


def bar(
    iterable: Iterable[object] | None = None, *, total: float | None, quiet: bool = False, **options: Any
) -> Any:
    """Return a progress bar on stderr, over `iterable` if it is given, that counts to `total` (None:
    unknown), with further `options` of `tqdm`.

    If stderr is not a terminal, the bar writes lines: at most one per second and one per percent, or one in
    ten seconds if the total is unknown. For the bars of Python functions see `bars_of_a_function`.
    """
    if _joint and _joint[-1][0] == options.get("desc"):
        return nullcontext(_joint[-1][1])
    if sys.stderr.isatty() or "ipykernel" in sys.modules:  # a notebook shows bars as a terminal does
        options |= {"mininterval": 1.0, "dynamic_ncols": True, "delay": 1.0 if _called else 0.0}
    elif _called:
        quiet = True
    elif total:
        # tqdm's monitor would otherwise print every 10 s, even if less than one percent is new.
        options |= {"miniters": math.ceil(total / 100), "mininterval": 1.0, "maxinterval": math.inf}
        options |= {"bar_format": _LINE, "file": _LogLines(sys.stderr)}
    else:
        options |= {"mininterval": 10.0, "file": _LogLines(sys.stderr)}
    return tqdm(iterable, total=total, disable=quiet, **options)


@contextmanager
def announced_compilation(notice: str, *, quiet: bool = False) -> Iterator[None]:
    """Write the notice as a line on stderr as soon as Numba compiles a function in the block.

    Machine code that Numba loads from its cache does not count.
    """
    if quiet:
        yield
        return
    from numba.core import event

    class Announcer(event.Listener):
        announced = False

        def on_start(self, event: object) -> None:
            if not self.announced:
                tqdm.write(notice, file=sys.stderr)
            self.announced = True

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Announcer()):
        yield


@contextmanager
def network_bar(network: "nn.Module", calls: int, quiet: bool, rows: int) -> Iterator[None]:
    """Show a bar during the block that counts to `rows` samples, and moves with each call of `network`.

    A call counts as the part 1 / `calls` of the samples in it. With absorbing noise, which needs fewer calls,
    the bar may not reach its end.
    """
    with bar(total=rows, unit="row", unit_scale=True, quiet=quiet) as rows_bar:

        def count(module: "nn.Module", inputs: tuple, output: object) -> None:
            rows_bar.update(len(inputs[0]) / calls)  # a hook that returns None does not change the output

        hook = network.register_forward_hook(count)
        try:
            yield
        finally:
            hook.remove()
