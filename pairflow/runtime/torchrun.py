"""Starts a step as several processes by torchrun, each with a GPU of its own where there are GPUs.

    python -m pairflow.runtime.torchrun 4 pairflow.steps.train --settings ...

It reserves GPUs, leaves the last word to the step, and ends with the step's own exit code.
"""

import logging
import os
import signal
import sys

import click

from pairflow.errors import InputError
from pairflow.runtime import gpus

SAVING = 600  # seconds that the processes have to save their state, once told to stop


def main(count: str, *command: str) -> int:
    """The exit code of the step."""
    logging.disable()  # of torchrun's own accounts
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(SAVING))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # is for the step's processes
    try:
        gpus.reserve(int(count))
    except InputError as error:
        click.echo(f"pairflow {command[0].rpartition('.')[2]}: error: {error}", err=True)
        return 2
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    try:
        # Without the "--" torchrun would take the step's --log for one of its own options.
        torchrun(["--standalone", "--nproc-per-node", count, "-m", "--", *command])
    except SignalException as stop:
        return 128 + stop.sigval
    except ChildFailedError as failed:
        rank, failure = failed.get_first_failure()
        if failure.exitcode > 0:
            return failure.exitcode
        name = signal.Signals(-failure.exitcode).name
        click.echo(f"process {rank} of {count} was ended by {name}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
