"""Starts a step: in this process, or as several processes by torchrun with a GPU each.

    python -m pairflow.runtime.launch <number of GPUs> pairflow.steps.train --settings ...

With 0 or 1 GPU the step runs in this process. With more, the launcher reserves the GPUs, leaves error
messages to the step, and ends with the step's exit code.
"""

import logging
import os
import runpy
import signal
import sys

import click

from pairflow.errors import InputError
from pairflow.runtime import distributed, gpus, signals

SAVING = 600  # seconds for the processes to save their state after a signal to stop


def main(count: str, *command: str) -> int:
    """Run the step `command`, a module and its options, with `count` GPUs (0 or 1: in this process). Returns
    its exit code."""
    if int(count) > 1:
        return run_torchrun(count, *command)
    sys.argv = list(command)
    try:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if distributed.world_size() > 1 and isinstance(end.code, int | None):
            # DistributedDataParallel leaves threads of Gloo behind, which can crash Python as it ends.
            signals.exit_at_once(end.code or 0)
        raise
    return 0


def run_torchrun(count: str, *command: str) -> int:
    """Run the step `command`, a module and its options, as `count` processes with a GPU each. Returns its
    exit code."""
    logging.disable()  # torchrun's own messages
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(SAVING))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # only the step's processes act on it
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
        processes = ["--standalone", "--nproc-per-node", count, "-m", "--"]
        torchrun([*processes, "pairflow.runtime.launch", "1", *command])
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
