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
SHAPES |= {"widest": (4096, 65536), "ffhq": (12288, 256)}
SHARED_LIMITS = {"sm_80": 163 << 10, "sm_90": 227 << 10}  # bytes per block


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


@pytest.mark.parametrize(
    ("shape", "fast_doubles"), [*((shape, True) for shape in SHAPES), ("qm9", False), ("cifar", False)]
)
@pytest.mark.parametrize("architecture", SHARED_LIMITS)
def test_kernels_compile_for_sm_80_and_sm_90(shape, architecture, fast_doubles):
    layout = gpu.KernelLayout.choose(*SHAPES[shape], SHARED_LIMITS[architecture])
    code = compiled(architecture, layout.macros(fast_doubles=fast_doubles))
    assert code[:4] == b"\x7fELF"
    assert b".text.walk" in code
    assert b".text.pack" in code


@pytest.mark.parametrize("limit", [48 << 10, 99 << 10, *SHARED_LIMITS.values()])
@pytest.mark.parametrize("vocabulary_size", [2, 3, 40, 256, 257, 65536])
def test_every_shape_has_a_layout_that_fits(vocabulary_size, limit):
    for length in (1, 31, 32, 33, 74, 784, 3072, 4095, 4096):
        layout = gpu.KernelLayout.choose(length, vocabulary_size, limit)
        assert layout.shared_bytes <= limit
        assert layout.resident * layout.shared_bytes <= limit
        assert 2**layout.planes >= vocabulary_size
        assert 1 <= layout.chunk <= layout.groups
        assert layout.chunk * layout.planes <= 32


def test_no_level_is_kept_beyond_its_reach():
    rng = np.random.default_rng(0)
    for length, vocabulary_size, steps in ((20, 4, 10), (60, 2, 20), (8, 100, 5)):
        tables = rule.level_tables(steps, length, vocabulary_size)
        for exponent in (1, 3, 7):
            counts = rng.integers(0, 10**exponent, length + 1) * (rng.random(length + 1) < 0.5)
            counts[0] = 1
            reaches = gpu._reaches(tables, int(counts.sum()))
            for table, reach in zip(tables, reaches, strict=True):
                weights = np.zeros(length + 1, np.int64)
                assert rule.level_weights(counts, table, weights) <= reach + 1


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
    data, layout = np.zeros((3, 2), np.uint8), gpu.KernelLayout.choose(2, 2, 48 << 10)
    settings = {"vocabulary_size": 2, "steps": 1, "seed": 0, "progress": False}
    with pytest.raises(
        pairflow.InputError, match=r"^tokens: the GPU engine takes fewer than 3 rows, found 3$"
    ):
        gpu.pair_on(None, layout, data, data, np.arange(3), **settings)


def test_rows_too_long_for_the_shared_memory_are_refused():
    """64 x 64 colour images; rows of up to 4,096 tokens fit every GPU, as tested above."""
    layout = gpu.KernelLayout.choose(12288, 256, 64 << 10)
    device = types.SimpleNamespace(shared_limit=64 << 10)
    data, settings = np.zeros((3, 12288), np.uint8), {"vocabulary_size": 256, "steps": 1, "seed": 0}
    with pytest.raises(
        pairflow.InputError, match=r"12288 tokens need 7\d KiB .*, this GPU has 64: use the back"
    ):
        gpu.pair_on(device, layout, data, data, np.arange(3), **settings, progress=False)
    assert gpu.KernelLayout.choose(12288, 256, 99 << 10).shared_bytes <= 99 << 10
