"""What can be known of the GPU engine where there is no GPU, next to test_gpu_emulated.py."""

import re
import sys
import types

import numpy as np
import pytest

import pairflow
from pairflow.pairing import rule
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.gpu import engine as gpu

SHAPES = {"qm9": (32, 40), "zinc": (74, 72), "mnist": (784, 2), "cifar": (3072, 256)}
SHAPES |= {"widest": (16384, 65536), "ffhq": (12288, 256)}


def compiled(architecture: str, macros: dict[str, object]) -> bytes:
    """The machine code of the kernels, by NVRTC."""
    from cuda.bindings import nvrtc

    def checked(status, *results):
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, _log(nvrtc, program)
        return results[0] if results else None

    program = None
    program = checked(*nvrtc.nvrtcCreateProgram(gpu.source().encode(), b"kernels.cu", 0, [], []))
    target = [f"--gpu-architecture={architecture}", "--std=c++17", "-Werror", "all-warnings"]
    options = [option.encode() for option in (*target, *gpu.defines(macros))]
    checked(*nvrtc.nvrtcCompileProgram(program, len(options), options))
    code = b" " * checked(*nvrtc.nvrtcGetCUBINSize(program))
    checked(*nvrtc.nvrtcGetCUBIN(program, code))
    return code


def _log(nvrtc, program) -> str:
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.decode()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_kernels_compile_for_sm_80_and_sm_90(shape, architecture):
    code = compiled(architecture, gpu.KernelLayout.choose(*SHAPES[shape]).macros())
    assert code[:4] == b"\x7fELF"
    assert b".text.walk" in code
    assert b".text.pack" in code


@pytest.mark.parametrize("length", [1, 2, 3, 4, 74, 784, 4095, 4096, 16384])
@pytest.mark.parametrize("vocabulary_size", [2, 3, 256, 257, 65536])
def test_the_bits_of_a_layout_hold_every_distance_and_every_symbol(length, vocabulary_size):
    layout = gpu.KernelLayout.choose(length, vocabulary_size)
    assert 2 ** (layout.bits - 1) <= length < 2**layout.bits <= 2**15
    assert 2 ** (layout.planes - 1) < vocabulary_size <= 2**layout.planes <= 2**16
    assert layout.shared_bytes <= 48 << 10  # what every GPU has


def cupy_with(monkeypatch, count_devices):
    """Puts a CuPy in place of whatever is installed, of which only the number of devices is asked."""
    runtime = types.SimpleNamespace(CUDARuntimeError=RuntimeError, getDeviceCount=count_devices)
    module = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", module)


def no_driver():
    raise RuntimeError("cudaErrorInsufficientDriver")


def test_a_gpu_asked_for_and_not_there_is_named(monkeypatch):
    def refused(message):
        with pytest.raises(pairflow.InputError, match=f"^{re.escape(message)}$"):
            pairflow.pair([[0, 1]], vocabulary_size=2, backend="gpu", progress=False)

    monkeypatch.setitem(sys.modules, "cupy", None)  # cannot be imported
    refused('backend: "gpu" needs CuPy: pip install "pairflow[gpu]"')
    cupy_with(monkeypatch, no_driver)
    refused('backend: "gpu" needs a CUDA device, and none is visible (cudaErrorInsufficientDriver)')
    cupy_with(monkeypatch, lambda: 0)
    refused('backend: "gpu" needs a CUDA device, and none is visible')


def test_auto_takes_the_gpu_where_there_is_one(monkeypatch):
    taken = []
    for engine in (gpu, cpu):
        monkeypatch.setattr(engine, "pair_rows", lambda data, *_, by=engine, **__: taken.append(by) or data)
    for devices in (0, 1):
        cupy_with(monkeypatch, lambda devices=devices: devices)
        pairflow.pair([[0, 1]], vocabulary_size=2, progress=False)
    assert taken == [cpu, gpu]


def test_more_keys_than_32_bits_can_number_are_refused(monkeypatch):
    monkeypatch.setattr(gpu, "MAX_KEYS", 3)
    data, layout = np.zeros((3, 2), np.uint8), gpu.KernelLayout.choose(2, 2)
    settings = {"vocabulary_size": 2, "steps": 1, "seed": 0, "progress": False}
    with pytest.raises(
        pairflow.InputError, match=r"^tokens: the GPU engine takes fewer than 3 rows, found 3$"
    ):
        gpu.pair_on(None, layout, data, data, np.arange(3), **settings)
