"""What `pairflow doctor` checks: Python and its packages, the machine, the configuration and the data."""

import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pairflow.config.experiment import CommonExperiment
from pairflow.config.file import experiment_files, names_in, read
from pairflow.data.source import DataSource, RowFile
from pairflow.data.status import Condition, Finding, described
from pairflow.errors import InputError
from pairflow.kinds import kind_of, source_of

IMPORT_SECONDS = 300.0  # an import takes two; on a busy machine or from a network disk it takes many
CORE = "core packages"


class Package(NamedTuple):
    """A package that `pairflow doctor` checks.

    `modules`: the modules to import, joined by commas; the first has the version. `use`: what the package is
    for. `distribution`: its name for pip. `extra`: the extra of pairflow that installs it, if any. `needed`:
    whether every experiment needs it. `on_gpu`: code that fails unless the package can use the GPU.
    """

    modules: str
    use: str
    distribution: str
    extra: str = ""
    needed: bool = False
    on_gpu: str = ""


_CORE = "numpy, scipy, numba, pandas, pyarrow, pydantic, yaml, tqdm"
_CUPY = "from cupy.cuda import nvrtc; nvrtc.getVersion(); from pairflow.pairing.gpu.engine import missing; "
PACKAGES = {
    CORE: Package(_CORE, "every step", "numpy", needed=True),
    "torch": Package(
        "torch, safetensors",
        "training and sampling",
        "torch",
        "train",
        needed=True,
        on_gpu="torch.cuda.init()",
    ),
    "torchvision": Package("torchvision", "MNIST and CIFAR-10", "torchvision", "images"),
    "RDKit": Package("rdkit, rdkit.Chem", "molecules and their validity", "rdkit", "molecules"),
    "SELFIES": Package("selfies", "molecules as SELFIES", "selfies", "molecules"),
    "tokenisers": Package("transformers, tokenizers", "word pieces and GPT-2", "transformers", "text"),
    "Snakemake": Package("snakemake, pooch", "the workflow", "snakemake", "workflow", needed=True),
    "SLURM plugin": Package(
        "snakemake_executor_plugin_slurm", "jobs on SLURM", "snakemake-executor-plugin-slurm", "slurm"
    ),
    "CuPy": Package(
        "cupy",
        "pairing on a GPU (with a driver below 580: pairflow[gpu-cuda12])",
        "cupy-cuda13x",
        "gpu",
        on_gpu=f"{_CUPY}assert not missing(), missing()",  # NVRTC is loaded when a kernel is compiled
    ),
}
LEAST_DISK = 2 * 2**30  # bytes; `demo` leaves 0.13 GB, the paper's protocol some tens of GB
LEAST_MEMORY = 2 * 2**30  # bytes; a small training takes 0.9 GB
DRIVER_SECONDS = 10.0


def findings(configuration: Path, offline: bool = False) -> Iterator[tuple[str, Finding]]:
    """Check all requirements, and the data sets of the file `configuration`. Yields (name, finding) of each.
    With `offline`, no server is asked.

    Packages and data sets that the user's own experiments need come first; the other data sets are one
    finding. An error in a check becomes its finding. Each program, import and address has a time limit.
    """
    experiments, settings = _configuration(configuration)
    own = {name for file in experiment_files(configuration) for name in names_in(file)}
    experiments = dict(sorted(experiments.items(), key=lambda item: item[0] not in own))
    kinds = dict.fromkeys(kind_of(experiment.data) for experiment in experiments.values())
    needed = [name for kind in kinds for name in kind.costs.packages]
    names = [*dict.fromkeys([*needed, *PACKAGES])]
    gpu_driver, gpus = driver()

    def imported(name: str) -> Finding:
        package = PACKAGES[name]
        return guarded(partial(check, package, package.needed or name in needed, bool(gpus)))

    with ThreadPoolExecutor(len(PACKAGES)) as pool:  # all are imported at the same time
        packages = dict(zip(names, pool.map(imported, names), strict=True))
    yield "Python", guarded(python)
    yield from packages.items()
    results = configuration.parent / "results"
    requirements: dict[str, Callable[[], Finding]] = {
        "GPU driver": lambda: gpu_driver,
        "snakemake on the PATH": snakemake,
        "results folder": partial(writable, results, f"mkdir $HOME/results && ln -s $HOME/results {results}"),
    }
    for variable, usual in (("TMPDIR", "/tmp"), ("XDG_CACHE_HOME", "~/.cache")):
        folder = Path(os.environ.get(variable) or usual).expanduser()
        requirements[variable] = partial(writable, folder, f"export {variable}=<a folder>")
    requirements |= {"memory": memory, "cores": cores, "configuration": lambda: settings}
    for name, look in requirements.items():
        yield name, guarded(look)
    if packages[CORE].condition is Condition.OK:
        yield from _data(experiments, own, configuration, offline)
    elif experiments:
        yield "data", Finding.optional(f"not checked, because the {CORE} cannot be imported")


def guarded(look: Callable[[], Finding]) -> Finding:
    """Run the check `look` and return its finding, or a finding about the error that it raises."""
    try:
        return look()
    except Exception as error:
        return Finding.attention(described(error))


def _configuration(path: Path) -> tuple[dict[str, CommonExperiment], Finding]:
    try:
        workflow = read(path)
    except InputError as error:
        return {}, Finding.attention(str(error))
    experiments = workflow.experiments
    if workflow.mistakes:
        return experiments, Finding.attention("; ".join(dict.fromkeys(workflow.mistakes.values())))
    return experiments, Finding.ok(f"{path}, {len(experiments)} experiments")


def _data(
    experiments: dict[str, CommonExperiment], own: set[str], configuration: Path, offline: bool
) -> Iterator[tuple[str, Finding]]:
    """Check all data sets. Yields (name, finding) for each file of the user's, and for each data set that an
    experiment in `own`, the names of the user's experiments, needs. With `offline`, no server is asked.

    These findings also name the experiments that need the data. The other data sets have one finding in all.
    """
    users: dict[DataSource, list[str]] = {}
    for name, experiment in experiments.items():
        users.setdefault(source_of(experiment.data, configuration.parent), []).append(name)
    others: dict[str, Finding] = {}
    with ThreadPoolExecutor(len(users) or 1) as pool:
        statuses = pool.map(lambda source: guarded(partial(source.status, offline)), users)
        for (source, names), status in zip(users.items(), statuses, strict=True):
            if own.intersection(names) or isinstance(source, RowFile):
                text = f"{status.text} ({', '.join(names)})"
                yield f"data: {source.name}", Finding(status.condition, text, status.remedy)
            else:
                others[source.name] = status
    if others:
        yield "other data sets", _summarise(others, configuration)


def _summarise(statuses: dict[str, Finding], configuration: Path) -> Finding:
    """Return one finding for the data sets in `statuses`, {name: finding}, which only experiments in the file
    `configuration` itself need."""
    from pairflow.data.download import DATA_DIR  # only here: it needs packages that may be broken

    absent = [name for name, status in statuses.items() if status.condition is not Condition.OK]
    present = [name for name in statuses if name not in absent]
    parts = {"found, or pairflow downloads them": present, "not found": absent}
    text = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)
    text += f" (only experiments in {configuration.name} need them)"
    if not absent:
        return Finding.ok(text)
    return Finding.optional(text, f"export {DATA_DIR}=<a folder with them>")


def check(package: Package, needed: bool, gpus: bool) -> Finding:
    """Check whether a package can be imported, is new enough, and, if there are `gpus`, can use one.

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
        text = f"{absent[0]} is not installed; it is needed for {package.use}"
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
    """Return the finding `text`; it needs attention if the version is not within `bounds` (`>=2.11`)."""
    if SpecifierSet(bounds).contains(version, prereleases=True):
        return Finding.ok(text)
    return Finding.attention(f"{text}, expected {bounds}", remedy)


def driver() -> tuple[Finding, list[str]]:
    """Ask nvidia-smi about the NVIDIA driver. Returns a finding, and the names of the GPUs."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is None:
        return Finding.optional("no NVIDIA GPU found (no nvidia-smi): every step runs on the CPU"), []
    try:
        finished = run(query, DRIVER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return Finding.attention(f"nvidia-smi gives no answer within {DRIVER_SECONDS:g} s", "nvidia-smi"), []
    rows = [row.strip() for row in finished.stdout.splitlines() if row.strip()]
    if finished.returncode or not rows:
        output = " ".join((finished.stdout + finished.stderr).split())[:200]
        return Finding.attention(f"nvidia-smi fails: {output or 'it prints nothing'}", "nvidia-smi"), []
    return Finding.ok("; ".join(rows)), [row.partition(",")[0] for row in rows]


def snakemake() -> Finding:
    """Check whether the shell finds the command snakemake."""
    if path := shutil.which("snakemake"):
        return Finding.ok(path)
    activate = shlex.quote(str(Path(sys.prefix) / "bin" / "activate"))
    return Finding.attention("there is no command snakemake on the PATH", f"source {activate}")


def writable(path: Path, remedy: str) -> Finding:
    """Check whether a folder, or its nearest existing parent, can be written to and has enough free space.

    `remedy` is the command that the finding suggests for a folder that cannot be written to.
    """
    path = path.absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"x")
    except OSError as error:
        return Finding.attention(f"{existing} cannot be written to: {error.strerror}", remedy)
    free = shutil.disk_usage(existing).free
    text = f"{path}, writable, {free / 2**30:,.1f} GB free"
    return Finding.ok(text) if free >= LEAST_DISK else Finding.attention(text, f"df -h {existing}")


def memory() -> Finding:
    from pairflow.runtime.memory import installed_memory, usable_memory

    lines = Path("/proc/meminfo").read_text().splitlines()
    facts = {line.partition(":")[0]: line.split()[1] for line in lines}
    installed, usable, free = installed_memory(), usable_memory(), 1024 * int(facts["MemAvailable"])
    text = f"{usable / 2**30:,.1f} GB, {min(free, usable) / 2**30:,.1f} GB of it free now"
    if usable < installed:
        text += f"; a limit, because the machine has {installed / 2**30:,.1f} GB"
    if usable < LEAST_MEMORY:
        return Finding.attention(f"{text}; a small training takes 0.9 GB", "snakemake --cores 1")
    return Finding.ok(text)


def cores() -> Finding:
    from pairflow.runtime.threads import available_cpus

    return Finding.ok(f"{available_cpus()} of {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
