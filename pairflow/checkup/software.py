"""Python, the packages and the GPU's parts: are they there, do they import, are they new enough."""

import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairflow.checkup.line import Line, State
from pairflow.checkup.processes import TooSlow, run

IMPORT_SECONDS = 30.0  # a cold disk or a network's takes many; usually it is two
DRIVER_SECONDS = 10.0
NO_GPU = "no NVIDIA GPU here: every step runs on the CPU"


@dataclass(frozen=True)
class Package:
    """What is imported, as which distribution it is installed, and what is said where it is missing.

    `extra` is pairflow's that brings it, empty for pairflow's own requirements; `needed_for` is empty where
    the workflow goes without it.
    """

    label: str
    modules: tuple[str, ...]
    distribution: str
    extra: str = ""
    needed_for: str = ""
    serves: str = ""


CORE = ("numpy", "scipy", "numba", "pandas", "pyarrow", "pydantic", "yaml", "tqdm", "pooch", "safetensors")
TORCH = Package("torch", ("torch",), "torch", needed_for="training and sampling")
TORCHVISION = Package("torchvision", ("torchvision",), "torchvision", "workflow", serves="MNIST and CIFAR-10")
SNAKEMAKE = Package("Snakemake", ("snakemake",), "snakemake", "workflow", needed_for="the workflow")
RDKIT = Package("RDKit", ("rdkit", "rdkit.Chem"), "rdkit", "workflow", serves="molecules")
PLUGIN = Package(
    "executor plugin",
    ("snakemake_executor_plugin_slurm",),
    "snakemake-executor-plugin-slurm",
    "slurm",
    serves="jobs on SLURM",
)
CUPY = Package("CuPy", ("cupy",), "cupy-cuda13x", "gpu", serves="pairing on a GPU")
NVRTC = Package("NVRTC", ("cupy.cuda.nvrtc",), "cupy-cuda13x", "gpu", serves="pairing on a GPU")
BASE = Package("NumPy and the like", CORE, "numpy", needed_for="every step")
PACKAGES = (BASE, TORCH, TORCHVISION, RDKIT, SNAKEMAKE, PLUGIN, CUPY, NVRTC)


def imported(packages: Iterable[Package] = PACKAGES) -> dict[str, dict[str, Any]]:
    """Label -> what `checkup.imports` says of each package, all at the same time."""
    packages = tuple(packages)
    with ThreadPoolExecutor(len(packages)) as pool:
        found = pool.map(lambda package: _import(package.modules), packages)
        return {package.label: facts for package, facts in zip(packages, found, strict=True)}


def _import(modules: tuple[str, ...]) -> dict[str, Any]:
    command = [sys.executable, "-m", "pairflow.checkup.imports", *modules]
    try:
        finished = run(command, IMPORT_SECONDS)
    except TooSlow as error:
        return {
            "slow": f"importing it gives {error} (load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores)"
        }
    try:
        return json.loads(finished.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (finished.stderr.split("\n")[-2:-1] or [""])[0]
        return {"error": f"importing it ends Python with code {finished.returncode} {last[:200]}".rstrip()}


def python() -> Line:
    found = f"{platform.python_version()} in {sys.prefix}"
    bounds = _metadata("Requires-Python")
    if bounds and not _within(platform.python_version(), bounds):
        return Line("Python", State.ATTENTION, f"{found}, expected {bounds}", "make setup")
    return Line("Python", State.OK, found)


def package(of: Package, facts: dict[str, Any], needed_for: str = "") -> Line:
    """The line of an imported package; `needed_for` says what needs it on top of its own."""
    needed_for = of.needed_for or needed_for
    install = f'pip install "pairflow[{of.extra}]"' if of.extra else "pip install pairflow"
    if missing := facts.get("missing"):
        if needed_for:
            return Line(of.label, State.ATTENTION, f"no {missing}, which {needed_for} needs", install)
        return Line(of.label, State.OPTIONAL, f"not installed; for {of.serves}", install)
    if slow := facts.get("slow"):
        return Line(of.label, State.ATTENTION, slow, f'time python -c "import {of.modules[0]}"')
    if error := facts.get("error"):
        return Line(of.label, State.ATTENTION, error, f"pip install --force-reinstall {of.distribution}")
    version = facts["version"] or _version(of.distribution) or ""
    bounds = _bounds(of.distribution)
    if version and bounds and not _within(version, bounds):
        wanted = shlex.quote(f"{of.distribution}{bounds}")
        return Line(of.label, State.ATTENTION, f"{version}, expected {bounds}", f"pip install {wanted}")
    return Line(of.label, State.OK, version)


def snakemake(facts: dict[str, Any]) -> Line:
    """It must be a command of this shell, too."""
    line = package(SNAKEMAKE, facts)
    if line.state is not State.OK:
        return line
    if shutil.which("snakemake"):
        return line
    activate = Path(sys.prefix) / "bin" / "activate"
    found = f"{line.found}, but there is no command snakemake on the PATH"
    return Line(line.name, State.ATTENTION, found, f"source {shlex.quote(str(activate))}")


def plugin(facts: dict[str, Any]) -> Line:
    line = package(PLUGIN, facts)
    here = "sbatch is here" if shutil.which("sbatch") else "no sbatch here"
    return Line(line.name, line.state, f"{line.found} ({here})", line.remedy)


def driver() -> tuple[Line, list[str]]:
    """The line of the NVIDIA driver, and the names of its GPUs."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is None:
        return Line("GPU driver", State.OPTIONAL, f"no nvidia-smi; {NO_GPU}"), []
    try:
        finished = run(query, DRIVER_SECONDS)
    except (TooSlow, OSError) as error:
        return Line("GPU driver", State.ATTENTION, f"nvidia-smi: {error}", "nvidia-smi"), []
    rows = [row.strip() for row in finished.stdout.splitlines() if row.strip()]
    if finished.returncode or not rows:
        said = " ".join((finished.stdout + finished.stderr).split())[:200]
        return Line(
            "GPU driver", State.ATTENTION, f"nvidia-smi fails: {said or 'it says nothing'}", "nvidia-smi"
        ), []
    return Line("GPU driver", State.OK, "; ".join(rows)), [row.partition(",")[0] for row in rows]


def cuda(torch: dict[str, Any], gpus: list[str]) -> Line:
    """Whether torch can use the GPUs that the driver has."""
    if "cuda" not in torch:
        return Line("CUDA", State.OPTIONAL, "torch would tell, and does not import")
    built = f"torch is built for CUDA {torch['cuda']}" if torch["cuda"] else "torch is built without CUDA"
    if torch["devices"]:
        return Line("CUDA", State.OK, f"{torch['cuda']} on {', '.join(torch['devices'])}")
    if not gpus:
        return Line("CUDA", State.OPTIONAL, f"{built}; {NO_GPU}")
    if torch["cuda"]:
        found = (
            f"{built}, and sees none of the driver's GPUs: is CUDA_VISIBLE_DEVICES set, is the driver older?"
        )
        return Line("CUDA", State.ATTENTION, found, 'python -c "import torch; torch.cuda.init()"')
    return Line(
        "CUDA", State.ATTENTION, f"{built}, and there is a GPU", "pip install --force-reinstall torch"
    )


def cupy(facts: dict[str, Any], gpus: list[str]) -> Line:
    line = package(CUPY, facts)
    if line.state is State.OK and (lacks := facts.get("lacks")):
        state = State.ATTENTION if gpus else State.OPTIONAL
        return Line(line.name, state, f"{line.found}, but {lacks}", "nvidia-smi" if gpus else "")
    return line


def nvrtc(facts: dict[str, Any], cupy_facts: dict[str, Any]) -> Line:
    """Compiles the kernels of the pairing: of use with CuPy alone, which loads it when it is asked for."""
    if "version" not in cupy_facts:
        return Line(
            "NVRTC", State.OPTIONAL, "loaded by CuPy, which is not there", 'pip install "pairflow[gpu]"'
        )
    if error := facts.get("error", facts.get("slow")):
        return Line("NVRTC", State.ATTENTION, error, 'pip install "nvidia-cuda-nvrtc>=13"')
    return Line("NVRTC", State.OK, facts["version"])


def _metadata(key: str) -> str | None:
    try:
        return importlib.metadata.metadata("pairflow").get(key)
    except importlib.metadata.PackageNotFoundError:
        return None


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _bounds(distribution: str) -> str:
    """The versions that pairflow asks for, as `>=2.11`; empty where that is not known."""
    from packaging.requirements import Requirement

    try:
        wanted = map(Requirement, importlib.metadata.requires("pairflow") or [])
    except importlib.metadata.PackageNotFoundError:
        return ""
    return next((str(each.specifier) for each in wanted if each.name == distribution), "")


def _within(version: str, bounds: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(bounds).contains(version, prereleases=True)
