"""Keeps the memory of freed tensors in the process, for its next tensors."""

import ctypes
import platform

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names in glibc's malloc.h


def keep_freed() -> None:
    """Let this process keep the memory of freed tensors of up to 1 GB for its next ones.

    By default glibc gives it back to the system, which fills it with zeros before it gives it out again. In
    sampling on a CPU that takes a sixth of the time (benchmarks/README.md). Other C libraries are left as
    they are.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, 2**30)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
