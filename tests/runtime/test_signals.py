"""How a process ends after a signal."""

import subprocess
import sys

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
    ends = ("sys.exit(130)", "signals.leave(2)")
    plain, quiet = (
        subprocess.run([sys.executable, "-c", HALF_MADE.format(end=end)], capture_output=True, text=True)
        for end in ends
    )
    assert (plain.returncode, quiet.returncode) == (130, 130)
    assert (plain.stdout, quiet.stdout) == ("in the buffer\n", "in the buffer\n")
    assert "AttributeError" in plain.stderr
    assert quiet.stderr == ""
