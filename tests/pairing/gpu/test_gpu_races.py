"""The GPU kernels on a CPU under the sanitizers of g++, for threads, addresses and undefined behaviour.

Every CUDA thread is a thread to ThreadSanitizer, and only barriers order what two of them do (cuda_on_cpu.h).
To see that this finds what it should, each barrier is left out in turn, and some small kernels are wrong.
"""

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from gpu_emulation import SANITIZERS, SMALL, Sanitized, equal_the_reference, needs_compiler
from in_ci import IN_CI

from pairflow.pairing.gpu import engine as gpu

pytestmark = needs_compiler
_BARRIER = re.compile(r"__sync(threads|warp)\(")


def barriers() -> list[tuple[str, int]]:
    """File and line of the barriers in the kernels."""
    places = []
    for line in gpu.source().splitlines():
        if start := re.match(r'#line 1 "(.*)"', line):
            file, number = start[1], 0
            continue
        number += 1
        if _BARRIER.search(line.partition("//")[0]):
            places.append((file, number))
    return places


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where programs are kept that several tests run; skips them where g++ comes without the sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    for options in SANITIZERS.values():
        command = ["g++", *options, "-x", "c++", "-", "-o", folder / "empty"]
        linked = subprocess.run(command, input=b"int main() {}", capture_output=True, check=False)
        if linked.returncode and not IN_CI:
            pytest.skip(f"g++ cannot link {options[-1]}")
    return folder


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize(
    ("rows", "length", "vocabulary_size", "layout"),
    [
        (1100, 70, 6, SMALL),
        (150, 33, 300, replace(SMALL, bits=6, planes=9, warps=3)),
        (90, 20, 40, gpu.KernelLayout.choose(20, 40)),
        (1, 1, 2, gpu.KernelLayout.choose(1, 2)),
    ],
    ids=["small", "9 planes", "chosen", "one row"],
)
def test_gpu_kernels_have_no_race_and_stay_in_their_memory(
    folder, clustered, sanitizer, rows, length, vocabulary_size, layout
):
    data = clustered(rows, length, vocabulary_size, dtype=np.int32)
    for backwards in (False, True):
        device = Sanitized(folder, sanitizer, backwards=backwards)
        assert equal_the_reference(device, layout, data, vocabulary_size, 3, rows=slice(0, 7))


def notices_without(place, folder, clustered) -> bool:
    """Whether a missing barrier shows, by ThreadSanitizer, a wrong result or a halt, in one of two orders."""
    data = clustered(1100, 12, 6)  # keys for two warps, and steps in which nothing jumps
    for backwards in (False, True):
        device = Sanitized(folder, "thread", backwards=backwards, without=place)
        try:
            if not equal_the_reference(device, SMALL, data, 6, 8, rows=slice(0, 7)):
                return True
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("place", barriers(), ids=lambda place: "{}:{}".format(*place))
def test_a_gpu_barrier_that_is_missing_is_noticed(folder, clustered, place):
    assert notices_without(place, folder, clustered)


WRONG = """
__device__ inline char* shared() {
    extern __shared__ double dynamic_shared[];
    return reinterpret_cast<char*>(dynamic_shared);
}
__device__ inline void pass_on(int* out, bool by_barrier) {
    shared()[threadIdx.x] = (char)threadIdx.x;
    if (by_barrier) __syncwarp(); else static_cast<void>(__any_sync(~0u, true));
    out[threadIdx.x] = shared()[(threadIdx.x + 1) % 32];
}
extern "C" __global__ void by_barrier(int* out) { pass_on(out, true); }
extern "C" __global__ void by_vote(int* out) { pass_on(out, false); }
extern "C" __global__ void all_blocks(int* out) { if (threadIdx.x == 0) *out = 1; }
extern "C" __global__ void each_block(int* out) { if (threadIdx.x == 0) out[blockIdx.x] = shared()[0] = 1; }
extern "C" __global__ void some_wait(int*) { if (threadIdx.x) __syncthreads(); }
extern "C" __global__ void write_shared(int* at) { shared()[*at] = 1; }
extern "C" __global__ void read_out(int* at) { if (threadIdx.x == 0) at[0] = at[*at]; }
extern "C" __global__ void overflow(int* at) { if (threadIdx.x == 0) *at += 0x7fffffff; }
"""


@pytest.mark.parametrize(
    ("sanitizer", "kernel", "blocks", "value", "report"),
    [
        ("thread", "by_barrier", 1, 0, None),
        ("thread", "by_vote", 1, 0, "data race"),
        ("thread", "each_block", 3, 0, None),
        ("thread", "all_blocks", 3, 0, "data race"),
        ("thread", "some_wait", 1, 0, "never come"),
        ("address", "write_shared", 1, 99, None),
        ("address", "write_shared", 1, 100, "use-after-poison"),
        ("address", "read_out", 1, 32, "heap-buffer-overflow"),
        ("address", "overflow", 1, 1, "signed integer overflow"),
    ],
)
def test_wrong_gpu_kernels_are_found_out(folder, sanitizer, kernel, blocks, value, report):
    device = Sanitized(folder, sanitizer)
    device.compile(WRONG, {})
    arguments = (np.full(32, value, np.int32),)
    if report is None:
        device.launch(kernel, blocks, 32, arguments, shared_bytes=100)
        return
    with pytest.raises(AssertionError, match=report):
        device.launch(kernel, blocks, 32, arguments, shared_bytes=100)
