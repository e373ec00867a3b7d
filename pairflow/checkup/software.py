"""Python, the packages and the driver of the GPU: are they there, do they import, are they new enough?"""

import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairflow.checkup.processes import run
from pairflow.data.status import Condition, Finding

IMPORT_SECONDS = 30.0  # usually it takes two; a cold disk or a network's takes many
DRIVER_SECONDS = 10.0
CORE = "core packages"
NO_GPU = "no NVIDIA GPU here: every step runs on the CPU"
_IMPORTED = "numpy scipy numba pandas pyarrow pydantic yaml tqdm pooch safetensors"


@dataclass(frozen=True)
class Package:
    """The modules to import, the distribution that has them, and what the package is for.

    `extra` is the extra of pairflow that installs it, empty for pairflow's own requirements. `needed_for` is
    empty if the workflow runs without it; `serves` is what then does not work.
    """

    modules: tuple[str, ...]
    distribution: str
    extra: str = ""
    needed_for: str = ""
    serves: str = ""


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


_CUPY = "cupy-cuda12x" if _version("cupy-cuda12x") else "cupy-cuda13x"
_PLUGIN, _SLURM = ("snakemake_executor_plugin_slurm",), "snakemake-executor-plugin-slurm"
PACKAGES = {
    CORE: Package(tuple(_IMPORTED.split()), "numpy", needed_for="every step"),
    "torch": Package(("torch",), "torch", needed_for="training and sampling"),
    "torchvision": Package(("torchvision",), "torchvision", serves="MNIST and CIFAR-10"),
    "RDKit": Package(("rdkit", "rdkit.Chem"), "rdkit", serves="molecules and their validity"),
    "SELFIES": Package(("selfies",), "selfies", "selfies", serves="molecules as SELFIES"),
    "tokenisers": Package(("transformers", "tokenizers"), "transformers", "text", serves="text in subwords"),
    "Snakemake": Package(("snakemake",), "snakemake", needed_for="the workflow"),
    "executor plugin": Package(_PLUGIN, _SLURM, "slurm", serves="jobs on SLURM"),
    "CuPy": Package(("cupy",), _CUPY, "gpu", serves="pairing on a GPU (gpu-cuda12: driver below 580)"),
}


def imported() -> dict[str, dict[str, Any]]:
    """Name -> what `checkup.imports` says of each package; all are imported at the same time."""
    with ThreadPoolExecutor(len(PACKAGES)) as pool:
        facts = pool.map(lambda package: import_apart(package.modules), PACKAGES.values())
        return dict(zip(PACKAGES, facts, strict=True))


def import_apart(modules: tuple[str, ...]) -> dict[str, Any]:
    """Import modules in a process of its own."""
    try:
        finished = run([sys.executable, "-m", "pairflow.checkup.imports", *modules], IMPORT_SECONDS)
    except TimeoutError:
        load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
        return {"slow": f"the import timed out after {IMPORT_SECONDS:g} s ({load})"}
    try:
        return json.loads(finished.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (finished.stderr.split("\n")[-2:-1] or [""])[0]
        return {"error": f"the import ended Python with code {finished.returncode} {last[:200]}".rstrip()}


def python() -> Finding:
    text = f"{platform.python_version()} in {sys.prefix}"
    bounds = importlib.metadata.metadata("pairflow")["Requires-Python"]
    if bounds and not _within(platform.python_version(), bounds):
        return Finding.attention(f"{text}, expected {bounds}", "make setup")
    return Finding.ok(text)


def package(name: str, facts: dict[str, Any], needed_for: str = "") -> Finding:
    """The finding on an imported package; `needed_for` says what does not work without it."""
    entry = PACKAGES[name]
    install = f'pip install "pairflow[{entry.extra}]"' if entry.extra else "pip install pairflow"
    if missing := facts.get("missing"):
        if needed_for:
            return Finding.attention(f"no {missing}, which {needed_for} needs", install)
        return Finding.optional(f"not installed; for {entry.serves}", install)
    if slow := facts.get("slow"):
        return Finding.attention(slow, f'time python -c "import {entry.modules[0]}"')
    if error := facts.get("error"):
        return Finding.attention(error, f"pip install --force-reinstall {entry.distribution}")
    version = facts["version"] or _version(entry.distribution)
    bounds = _bounds(entry.distribution)
    if version and bounds and not _within(version, bounds):
        requirement = shlex.quote(f"{entry.distribution}{bounds}")
        return Finding.attention(f"{version}, expected {bounds}", f"pip install {requirement}")
    return Finding.ok(version)


def on_the_path(finding: Finding) -> Finding:
    """Snakemake must also be a command of this shell."""
    if finding.condition is not Condition.OK or shutil.which("snakemake"):
        return finding
    activate = shlex.quote(str(Path(sys.prefix) / "bin" / "activate"))
    text = f"{finding.text}, but there is no command snakemake on the PATH"
    return Finding.attention(text, f"source {activate}")


def with_sbatch(finding: Finding) -> Finding:
    here = "sbatch is here" if shutil.which("sbatch") else "no sbatch here"
    return replace(finding, text=f"{finding.text} ({here})")


def driver() -> tuple[Finding, list[str]]:
    """The finding on the NVIDIA driver, and the names of its GPUs."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is None:
        return Finding.optional(f"no nvidia-smi; {NO_GPU}"), []
    try:
        finished = run(query, DRIVER_SECONDS)
    except OSError as error:  # TimeoutError included
        return Finding.attention(f"nvidia-smi: {error}", "nvidia-smi"), []
    rows = [row.strip() for row in finished.stdout.splitlines() if row.strip()]
    if finished.returncode or not rows:
        output = " ".join((finished.stdout + finished.stderr).split())[:200]
        return Finding.attention(f"nvidia-smi fails: {output or 'it prints nothing'}", "nvidia-smi"), []
    return Finding.ok("; ".join(rows)), [row.partition(",")[0] for row in rows]


def cuda(torch: dict[str, Any], gpus: list[str]) -> Finding:
    """Whether torch can use the GPUs that the driver has."""
    if "cuda" not in torch:
        return Finding.optional("not checked, because torch cannot be imported")
    if torch["devices"]:
        return Finding.ok(f"{torch['cuda']} on {', '.join(torch['devices'])}")
    built = f"torch is built for CUDA {torch['cuda']}" if torch["cuda"] else "torch is built without CUDA"
    if not gpus:
        return Finding.optional(f"{built}; {NO_GPU}")
    if not torch["cuda"]:
        return Finding.attention(f"{built}, and there is a GPU", "pip install --force-reinstall torch")
    text = f"{built}, but finds no GPU: is CUDA_VISIBLE_DEVICES set, is the driver older?"
    return Finding.attention(text, 'python -c "import torch; torch.cuda.init()"')


def cupy(facts: dict[str, Any], gpus: list[str]) -> Finding:
    finding = package("CuPy", facts)
    if finding.condition is not Condition.OK or not facts.get("lacks"):
        return finding
    text = f"{finding.text}, but {facts['lacks']}"
    return Finding.attention(text, "nvidia-smi") if gpus else Finding.optional(text)


def nvrtc(cupy: dict[str, Any]) -> Finding:
    """NVRTC compiles the kernels of the pairing; CuPy loads it when they are first used."""
    if "version" not in cupy:
        return Finding.optional("not checked, because CuPy cannot be imported", 'pip install "pairflow[gpu]"')
    if error := cupy.get("nvrtc_error"):
        compiler = "nvidia-cuda-nvrtc-cu12" if _CUPY == "cupy-cuda12x" else "nvidia-cuda-nvrtc>=13"
        return Finding.attention(error, f'pip install "{compiler}"')
    return Finding.ok(cupy["nvrtc"])


def _bounds(distribution: str) -> str:
    """The versions that pairflow requires, as `>=2.11`; empty where that is not known."""
    from packaging.requirements import Requirement

    try:
        requirements = map(Requirement, importlib.metadata.requires("pairflow") or [])
    except importlib.metadata.PackageNotFoundError:
        return ""
    return next((str(one.specifier) for one in requirements if one.name == distribution), "")


def _within(version: str, bounds: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(bounds).contains(version, prereleases=True)
