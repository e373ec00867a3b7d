"""Other programs, run for a limited time."""

import os
import signal
import subprocess


def run(command: list[str], seconds: float) -> subprocess.CompletedProcess:
    """Run a command to its end. If that takes longer, kill it and its children, and raise TimeoutError."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException as error:  # Ctrl-C leaves nothing behind either
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
