"""The machine's memory; and freed tensors' memory, which stays in the process for its next tensors."""

import ctypes
import os
import platform

from pairflow.runtime.cgroups import read_limits

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names in glibc's malloc.h


def installed_memory() -> int:
    """Return the bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def usable_memory() -> int:
    """Return the bytes of memory that this process may use: of the machine, container or cluster job."""
    limits = read_limits("memory", "memory.max", "memory.limit_in_bytes")
    return min([installed_memory(), *(limit for [limit] in limits)])


def keep_freed() -> None:
    """Let this process keep the memory of freed tensors of up to 1 GB for its next ones.

    By default glibc gives it back to the system, which fills it with zeros before it gives it out again. In
    sampling on a CPU that takes a sixth of the time (benchmarks/records/speed.md). Other C libraries are left
    as they are.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, 2**30)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
