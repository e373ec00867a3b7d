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
import torch
from pairflow.runtime import memory

{first}
for number in range(11):
    {make}
    if number == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
ARRAY, TENSOR = "np.ones(25_000_000, np.float32)", "torch.ones(25_000_000)"
only_glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory"
)


def count_new_pages(make, first="memory.keep_freed()"):
    """Pages that the system gives for ten arrays of 100 MB, each after the one before was freed."""
    command = [sys.executable, "-c", TEN_ARRAYS.format(first=first, make=make)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@only_glibc
def test_arrays_take_the_memory_of_freed_ones():
    """Without the setting each array has new pages, 24,414 usual ones or fewer large ones; with it, none."""
    assert count_new_pages(ARRAY, first="") > 0.1 * PAGES
    assert max(count_new_pages(ARRAY) for _ in range(3)) < 0.005 * PAGES


@only_glibc
def test_tensors_take_the_memory_of_freed_ones():
    """torch aligns its tensors, so that a freed one may be too small for the next: one, three, six or seven
    of ten need new pages, depending on where the heap begins, which the system draws."""
    assert count_new_pages(TENSOR, first="") > 9 * PAGES
    assert max(count_new_pages(TENSOR) for _ in range(3)) < 7.1 * PAGES
