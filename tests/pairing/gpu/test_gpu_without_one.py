"""What can be known of the GPU engine where there is no GPU, next to test_gpu_emulated.py."""

import re
import sys
import tracemalloc
import types

import numpy as np
import pytest
from gpu_emulation import StandInForCupy

import pairflow
from pairflow.config import PairSettings
from pairflow.pairing import oracle, pair
from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.gpu import engine as gpu

SHAPES = {"qm9": (32, 40), "zinc": (74, 72), "mnist": (784, 2), "cifar": (3072, 256)}
SHAPES |= {"widest": (16384, 65536), "ffhq": (12288, 256)}


def compiled(architecture: str, macros: dict[str, object], options: tuple = gpu.OPTIONS) -> bytes:
    """The kernels by NVRTC: as machine code for an architecture sm_..., as PTX for compute_..."""
    from cuda.bindings import nvrtc

    def checked(status, *results):
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, _log(nvrtc, program)
        return results[0] if results else None

    program = None
    program = checked(*nvrtc.nvrtcCreateProgram(gpu.source().encode(), b"kernels.cu", 0, [], []))
    target = [f"--gpu-architecture={architecture}", *options, "-Werror", "all-warnings"]
    encoded = [option.encode() for option in (*target, *gpu.defines(macros))]
    checked(*nvrtc.nvrtcCompileProgram(program, len(encoded), encoded))
    kind = "CUBIN" if architecture.startswith("sm_") else "PTX"
    code = b" " * checked(*getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
    checked(*getattr(nvrtc, f"nvrtcGet{kind}")(program, code))
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


def test_the_kernels_round_after_every_operation():
    """A product fused with a sum rounds once. PTX that names no rounding may still be fused."""
    fused, macros = re.compile(rb"\bfma\.|\b(add|sub|mul)\.f64"), gpu.KernelLayout.choose(32, 40).macros()
    assert not fused.search(compiled("compute_80", macros))
    others = tuple(option for option in gpu.OPTIONS if "fmad" not in option)
    assert fused.search(compiled("compute_80", macros, others))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 74, 784, 4095, 4096, 16384])
@pytest.mark.parametrize("vocabulary_size", [2, 3, 256, 257, 65536])
def test_the_bits_of_a_layout_hold_every_distance_and_every_symbol(length, vocabulary_size):
    layout = gpu.KernelLayout.choose(length, vocabulary_size)
    assert 2 ** (layout.bits - 1) <= length < 2**layout.bits <= 2**15
    assert 2 ** (layout.planes - 1) < vocabulary_size <= 2**layout.planes <= 2**16
    assert layout.shared_bytes <= 48 << 10  # what every GPU has


def cupy_with(monkeypatch, count_devices, *, driver=13000, capability="90"):
    """Puts a CuPy in place of whatever is installed, of which only these facts are asked."""
    runtime = types.SimpleNamespace(
        CUDARuntimeError=RuntimeError, getDeviceCount=count_devices, driverGetVersion=lambda: driver
    )
    device = types.SimpleNamespace(compute_capability=capability)
    cuda = types.SimpleNamespace(runtime=runtime, Device=lambda: device)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))


def no_driver():
    raise RuntimeError("cudaErrorInsufficientDriver")


INVISIBLE = "needs a CUDA device, and none is visible"
LACKS = {  # a world where the GPU engine cannot run -> how to make it, and what is missing there
    "no CuPy": (
        lambda patch: patch.setitem(sys.modules, "cupy", None),  # cannot be imported
        'needs CuPy: pip install "pairflow[gpu]", or "pairflow[gpu-cuda12]" for CUDA 12',
    ),
    "no driver": (
        lambda patch: cupy_with(patch, no_driver, driver=0),
        f"{INVISIBLE} (cudaErrorInsufficientDriver)",
    ),
    "no device": (lambda patch: cupy_with(patch, lambda: 0), INVISIBLE),
    "old driver": (
        lambda patch: cupy_with(patch, no_driver, driver=12040),
        f'{INVISIBLE} (cudaErrorInsufficientDriver); the extra "gpu-cuda12" suits drivers below 580',
    ),
    "old GPU": (
        lambda patch: cupy_with(patch, lambda: 1, capability="75"),
        "needs a GPU of compute capability 8.0 or more, and this one has 7.5",
    ),
}


@pytest.mark.parametrize("case", LACKS)
def test_a_gpu_that_cannot_be_used_is_named_and_auto_takes_the_cpu_with_a_note(monkeypatch, capsys, case):
    make, lack = LACKS[case]
    make(monkeypatch)
    with pytest.raises(pairflow.InputError, match=f'^backend: "gpu" {re.escape(lack)}$'):
        pairflow.pair([[0, 1]], vocabulary_size=2, backend="gpu", progress=False)
    monkeypatch.setattr(pair, "GPU_COMPARISONS", 0)
    monkeypatch.setattr(cpu, "pair_rows", lambda data, *_, **__: data)
    pair._note_that_the_cpu_pairs.cache_clear()
    for _ in range(2):
        pairflow.pair([[0, 1]], vocabulary_size=2, progress=False)
    note = f"pairflow: note: the CPU pairs, because the GPU engine {lack}\n"
    assert capsys.readouterr().err == (note if case.startswith("old") else "")


class FakeGpu:
    """Takes the place of `gpu.GpuPairer`."""

    def __init__(self, *_, **__):
        self.calls = []

    def pair_rows(self, data, *arguments, **numbers):
        self.calls.append(data)
        return oracle.pair_rows(data, *arguments, **numbers)


@pytest.fixture
def fake_gpu(monkeypatch):
    """A GPU with room for everything; its calls are recorded."""
    fake = FakeGpu()
    cupy_with(monkeypatch, lambda: 1)
    monkeypatch.setattr(gpu, "Cuda", lambda: None)
    monkeypatch.setattr(gpu, "GpuPairer", lambda *_, **__: fake)
    return fake


def pairer_of(tokens, vocabulary_size, backend="auto", **settings):
    options = {"backend": backend, "threads": None, "progress": False}
    return pair.make_pairer(tokens, PairSettings(**settings), vocabulary_size=vocabulary_size, **options)


def test_auto_takes_the_gpu_for_large_data_and_does_not_copy_them(fake_gpu, monkeypatch):
    tokens = np.zeros((30, 4), np.uint8)
    monkeypatch.setattr(pair, "GPU_COMPARISONS", 30 * 30 * 4 * 5)
    pairer = pairer_of(tokens, 2, steps=5)
    assert pairer.on_gpu
    pairer.sources((0, 10))
    pairer.sources((10, 30))
    assert [data is tokens for data in fake_gpu.calls] == [True, True]
    assert not pairer_of(tokens[:29], 2, steps=5).on_gpu
    assert not pairer_of(tokens, 2, steps=5, subsets=2).on_gpu
    assert pairer_of(tokens[:2], 2, "gpu", steps=5).on_gpu


@pytest.mark.parametrize(
    ("error", "lack"),
    [
        (Exception("walk.cu(1): error\n\n1 error\n"), "cannot be compiled here: walk.cu(1): error"),
        (RuntimeError("CUDA_ERROR_NO_BINARY"), "cannot be compiled here: CUDA_ERROR_NO_BINARY"),
        (OSError(), "cannot be compiled here: OSError"),
        (MemoryError("allocating 9 bytes"), "has too little memory: allocating 9 bytes"),
    ],
)
def test_the_cpu_takes_over_from_a_gpu_that_turns_out_to_be_unusable(
    tmp_path, monkeypatch, capsys, clustered, error, lack
):
    def fail(*_, **__):
        raise error

    tokens, settings = clustered(40, 6, 5), {"vocabulary_size": 5, "progress": False}
    cupy = StandInForCupy(tmp_path)
    cupy.zeros = fail
    get_function = str if isinstance(error, MemoryError) else fail
    cupy.RawModule = lambda **_: types.SimpleNamespace(get_function=get_function)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(pair, "GPU_COMPARISONS", 0)
    pair._note_that_the_cpu_pairs.cache_clear()
    pairer = pairer_of(tokens, 5)
    expected = pairflow.pair(tokens, **settings, backend="reference")
    assert np.array_equal(pairer.sources(), expected)
    assert not pairer.on_gpu
    assert capsys.readouterr().err == f"pairflow: note: the CPU pairs, because the GPU engine {lack}\n"
    with pytest.raises(pairflow.InputError, match=f'^backend: "gpu" {re.escape(lack)}$'):
        pairflow.pair(tokens, **settings, backend="gpu")


@pytest.mark.parametrize(
    ("dtype", "vocabulary_size", "sent", "copies"),
    [(np.uint8, 256, np.uint8, 1), (np.uint16, 257, np.uint16, 1), (np.int64, 5, np.uint8, 2)],
)
def test_the_gpu_gets_one_sorted_copy_of_the_keys_in_their_smallest_type(
    dtype, vocabulary_size, sent, copies
):
    data = np.random.default_rng(0).integers(0, vocabulary_size, (3000, 500)).astype(dtype)
    taken = []
    device = types.SimpleNamespace(
        array=lambda values: taken.append(values.dtype), zeros=lambda *_: None, launch=lambda *_: None
    )
    tracemalloc.start()
    gpu._packed(device, {"pack": None}, gpu.KernelLayout.choose(500, vocabulary_size), data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken[0] == sent
    assert peak < (copies + 0.5) * data.size * np.dtype(sent).itemsize


def test_more_keys_than_32_bits_can_number_are_refused(monkeypatch):
    monkeypatch.setattr(gpu, "MAX_KEYS", 3)
    device = types.SimpleNamespace(multiprocessors=1, compile=lambda *_: {})
    pairer = gpu.GpuPairer(device, gpu.KernelLayout.choose(2, 2))
    data, settings = np.zeros((3, 2), np.uint8), {"vocabulary_size": 2, "steps": 1, "seed": 0}
    with pytest.raises(
        pairflow.InputError, match=r"^tokens: the GPU engine takes fewer than 3 rows, found 3$"
    ):
        pairer.pair_rows(data, data, np.arange(3), **settings)
