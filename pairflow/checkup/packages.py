"""Checks whether Python and its packages are installed, importable, new enough, and able to use the GPU."""

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pairflow.data.status import Finding

IMPORT_SECONDS = 300.0  # an import takes two; on a busy machine or from a network disk it takes many
CORE = "core packages"


class Package(NamedTuple):
    """A package that `pairflow doctor` checks.

    `modules`: the modules to import, of which the first has the version. `use`: what the package is for.
    `distribution`: its name for pip. `extra`: the extra of pairflow that installs it, if any. `needed`:
    whether every experiment needs it. `on_gpu`: code that fails unless the package can use the GPU.
    """

    modules: str
    use: str
    distribution: str
    extra: str = ""
    needed: bool = False
    on_gpu: str = ""


_CORE = "numpy, scipy, numba, pandas, pyarrow, pydantic, yaml, tqdm, pooch, safetensors"
_CUPY = "from cupy.cuda import nvrtc; nvrtc.getVersion(); from pairflow.pairing.gpu.engine import missing; "
PACKAGES = {
    CORE: Package(_CORE, "every step", "numpy", needed=True),
    "torch": Package("torch", "training and sampling", "torch", needed=True, on_gpu="torch.cuda.init()"),
    "torchvision": Package("torchvision", "MNIST and CIFAR-10", "torchvision"),
    "RDKit": Package("rdkit, rdkit.Chem", "molecules and their validity", "rdkit"),
    "SELFIES": Package("selfies", "molecules as SELFIES", "selfies"),
    "tokenisers": Package("transformers, tokenizers", "text in word pieces", "transformers", "text"),
    "Snakemake": Package("snakemake", "the workflow", "snakemake", needed=True),
    "executor plugin": Package(
        "snakemake_executor_plugin_slurm", "jobs on SLURM", "snakemake-executor-plugin-slurm", "slurm"
    ),
    "CuPy": Package(
        "cupy",
        "pairing on a GPU (gpu-cuda12: driver below 580)",
        "cupy-cuda13x",
        "gpu",
        on_gpu=f"{_CUPY}assert not missing(), missing()",  # NVRTC is loaded when a kernel is compiled
    ),
}


def check(package: Package, needed: bool, gpus: bool) -> Finding:
    """Check whether a package can be imported, is new enough, and can use the GPU if `gpus`.

    A missing package needs attention if it is `needed`; otherwise it is reported as optional. The package is
    imported in a new process, because an import may raise anything, end its process or never return.
    """
    first, *others = package.modules.split(", ")
    shown = f"print(getattr({first}, '__version__', ''))"
    code = f"import {package.modules}; {shown}; {package.on_gpu if gpus else ''}"
    try:
        finished = run([sys.executable, "-c", code], IMPORT_SECONDS)
    except subprocess.TimeoutExpired:
        load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
        text = f"the import timed out after {IMPORT_SECONDS:g} s ({load})"
        return Finding.attention(text, f'time python -c "import {first}"')
    if finished.returncode:
        last = [line for line in finished.stderr.splitlines() if line.strip()][-1:]
        text = f"the import ends with code {finished.returncode} {''.join(last)[:300]}".rstrip()
        absent = [name for name in (first, *others) if f"No module named '{name}'" in text]
        if not absent:
            return Finding.attention(text, f"pip install --force-reinstall {package.distribution}")
        install = f'pip install "pairflow[{package.extra}]"' if package.extra else "pip install pairflow"
        text = f"no {absent[0]}, which is for {package.use}"
        return (Finding.attention if needed else Finding.optional)(text, install)
    version = finished.stdout.splitlines()[-1] or importlib.metadata.version(package.distribution)
    requirements = map(Requirement, importlib.metadata.requires("pairflow") or [])
    bounds = next((str(one.specifier) for one in requirements if one.name == package.distribution), "")
    return _within(bounds, version, version, f"pip install {shlex.quote(package.distribution + bounds)}")


def run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command and return its result, with its output. Raises TimeoutExpired after `seconds`."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=seconds,
        check=False,
    )


def python() -> Finding:
    version = platform.python_version()
    bounds = importlib.metadata.metadata("pairflow")["Requires-Python"] or ""
    return _within(bounds, version, f"{version} in {sys.prefix}", "make setup")


def _within(bounds: str, version: str, text: str, remedy: str) -> Finding:
    """The finding `text`; it needs attention if the version is not within `bounds`, such as `>=2.11`."""
    if SpecifierSet(bounds).contains(version, prereleases=True):
        return Finding.ok(text)
    return Finding.attention(f"{text}, expected {bounds}", remedy)
