"""Runs a step several times in one process, which imports the step's packages only once.

    python -m pairflow.runtime.several pairflow.steps.sample --model M -- --nfe 1 --out a -- --nfe 2 --out b

The arguments before the first `--` are for every run; the others are for one run each. The first run that
fails ends the process with its exit code.
"""

import importlib
import sys
from itertools import groupby


def main(arguments: list[str]) -> None:
    """Run the step in the module `arguments[0]` once for each group of arguments that begins with `--`."""
    module, *rest = arguments
    shared, *runs = (
        list(group) for is_mark, group in groupby(rest, lambda part: part == "--") if not is_mark
    )
    command = importlib.import_module(module).main
    for own in runs:
        try:
            command.main([*shared, *own])
        except SystemExit as end:
            if end.code:
                raise


if __name__ == "__main__":
    main(sys.argv[1:])
