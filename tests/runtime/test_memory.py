"""Memory that a process keeps for its next tensors."""

import platform
import resource
import subprocess
import sys

import pytest

PAGES = 100_000_000 / resource.getpagesize()  # of an array of 100 MB
ARRAYS = """
import resource
import numpy as np
from pairflow.runtime import memory

{first}
for number in range(3):
    np.ones(25_000_000, np.float32)
    if number == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_new_pages(first="memory.keep_freed()"):
    """Pages that the system gives for two arrays of 100 MB, each after the one before was freed."""
    command = [sys.executable, "-c", ARRAYS.format(first=first)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory if it is told to"
)
def test_arrays_take_the_memory_of_freed_ones():
    """Without the setting each array has new pages, 24,414 usual ones or fewer large ones; with it, none."""
    assert count_new_pages(first="") > 0.02 * PAGES
    assert count_new_pages() < 0.005 * PAGES
