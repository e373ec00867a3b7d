"""Memory that a process keeps for its next tensors."""

import platform
import resource
import subprocess
import sys

import pytest

PAGES = 100_000_000 / resource.getpagesize()  # of an array of 100 MB
TEN_ARRAYS = """
import resource
import numpy as np
from pairflow.runtime import memory

{first}
for number in range(11):
    np.ones(25_000_000, np.float32)
    if number == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
only_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory"
)


def count_new_pages(first="memory.keep_freed()"):
    """Pages that the system gives for ten arrays of 100 MB, each after the one before was freed."""
    command = [sys.executable, "-c", TEN_ARRAYS.format(first=first)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@only_glibc
def test_arrays_take_the_memory_of_freed_ones():
    """Without the setting each array has new pages, 24,414 usual ones or fewer large ones; with it, none."""
    assert count_new_pages(first="") > 0.1 * PAGES
    assert count_new_pages() < 0.005 * PAGES
