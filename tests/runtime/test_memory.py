"""Memory that a process keeps for its next tensors."""

import platform
import resource
import subprocess
import sys

import pytest

PAGES = 100_000_000 / resource.getpagesize()  # of a tensor of 100 MB
TEN_TENSORS = """
import resource, torch
from pairflow.runtime import memory

{first}
for number in range(11):
    torch.ones(25_000_000)
    if number == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_new_pages(first):
    """Pages that the system gives for ten tensors of 100 MB, each after the one before was freed."""
    command = [sys.executable, "-c", TEN_TENSORS.format(first=first)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory")
def test_tensors_take_the_memory_of_freed_ones():
    assert count_new_pages("") > 8 * PAGES
    # One or six of the ten need new pages, depending on where the heap begins, which the system draws.
    counts: list[int] = []
    while len(counts) < 20 and min(counts, default=10 * PAGES) > 2 * PAGES:
        counts.append(count_new_pages("memory.keep_freed()"))
    assert max(counts) < 8 * PAGES
    assert min(counts) < 2 * PAGES
