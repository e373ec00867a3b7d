"""Other programs and the network, asked for a limited time."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any


class TooSlow(Exception):
    """There was no answer in time."""


def run(command: list[str], seconds: float) -> subprocess.CompletedProcess:
    """Run a command to its end; TooSlow, and it and its children are gone, if that takes longer."""
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
        except BaseException as error:  # Ctrl-C, too, leaves nothing behind
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TooSlow(f"no answer within {seconds:g} s") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What `work` returns or raises; TooSlow if that takes longer. A look-up of a name has no timeout."""
    found: dict[str, Any] = {}

    def note() -> None:
        try:
            found["value"] = work()
        except Exception as error:
            found["error"] = error

    thread = threading.Thread(target=note, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in found:
        raise found["error"]
    if "value" not in found:
        raise TooSlow(f"no answer within {seconds:g} s")
    return found["value"]
