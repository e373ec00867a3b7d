"""How a process ends after a signal."""

import signal
import subprocess
import sys

import pytest

from pairflow.errors import Interrupted
from pairflow.runtime import signals

HALF_MADE = """
import sys
from pairflow.runtime import signals

class Reference:
    def __del__(self):
        del self.pointer

half_made = Reference()
print("in the buffer")
{end}
"""


def test_what_was_half_made_at_a_signal_is_not_deleted():
    scripts = [HALF_MADE.format(end=end) for end in ("sys.exit(130)", "signals.leave(2)")]
    commands = [[sys.executable, "-c", script] for script in scripts]
    plain, quiet = (subprocess.run(command, capture_output=True, text=True) for command in commands)
    assert (plain.returncode, quiet.returncode) == (130, 130)
    assert (plain.stdout, quiet.stdout) == ("in the buffer\n", "in the buffer\n")
    assert "AttributeError" in plain.stderr
    assert quiet.stderr == ""


def a_library(error: Exception):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise error from interrupt


def test_an_interrupt_stays_one_whatever_a_library_makes_of_it():
    with pytest.raises(KeyboardInterrupt), signals.for_a_command():
        a_library(ValueError("could not determine the shape"))
    with pytest.raises(Interrupted, match="saved"), signals.for_a_command():
        a_library(Interrupted("saved", signal.SIGINT))
    with pytest.raises(ValueError, match="of its own"), signals.for_a_command():
        raise ValueError("of its own")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.promise("signal")
def test_a_second_interrupt_is_not_held_back():
    with signals.collect() as received:
        signal.raise_signal(signal.SIGINT)
        assert received == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.promise("signal")
def test_a_second_sigterm_is_as_good_as_one():
    """SLURM and its srun each send one within milliseconds: neither may end the saving of the state."""
    with signals.collect() as received:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        assert received == [signal.SIGTERM] * 2
