"""All requirements, in the order in which they are shown."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pairflow.checkup import hardware, software
from pairflow.config.file import read
from pairflow.data.status import Finding, described
from pairflow.errors import InputError
from pairflow.kinds import kind_of, source_of


def findings(configuration: Path, offline: bool = False) -> Iterator[tuple[str, Finding]]:
    """Name and finding of each requirement; `configuration` says which data sets are among them.

    It raises nothing, and each program, import and address has a limited time.
    """
    experiments, settings = _configuration(configuration)
    facts = software.imported()
    driver, gpus = software.driver()
    needed_for = {name: package.needed_for for name, package in software.PACKAGES.items()}
    for kind in {kind_of(experiment.data) for experiment in experiments.values()}:
        needed_for |= dict.fromkeys(kind.packages, f"an experiment on {kind.rows}")
    package = {name: partial(software.package, name, facts[name], use) for name, use in needed_for.items()}
    requirements: dict[str, Callable[[], Finding]] = {
        "Python": software.python,
        **package,
        "Snakemake": lambda: software.on_the_path(package["Snakemake"]()),
        "executor plugin": lambda: software.with_sbatch(package["executor plugin"]()),
        "GPU driver": lambda: driver,
        "CUDA": lambda: software.cuda(facts["torch"], gpus),
        "CuPy": lambda: software.cupy(facts["CuPy"], gpus),
        "NVRTC": lambda: software.nvrtc(facts["CuPy"]),
        "results folder": lambda: hardware.results(configuration.parent),
        "temporary folders": hardware.scratch,
        "memory": hardware.memory,
        "cores": hardware.cores,
        "configuration": lambda: settings,
    }
    for name, look in requirements.items():
        yield name, guarded(look)
    if "version" in facts[software.CORE]:
        yield from _data(experiments, configuration.parent, offline, "version" in facts["torchvision"])
    elif experiments:
        yield "data", Finding.optional(f"not checked, because the {software.CORE} cannot be imported")


def guarded(look: Callable[[], Finding]) -> Finding:
    """The finding that `look` returns, or one that says what it raises."""
    try:
        return look()
    except Exception as error:
        return Finding.attention(described(error))


def _configuration(path: Path) -> tuple[dict[str, Any], Finding]:
    try:
        workflow = read(path)
    except InputError as error:
        return {}, Finding.attention(str(error))
    experiments = workflow.experiments
    if workflow.mistakes:
        return experiments, Finding.attention("; ".join(dict.fromkeys(workflow.mistakes.values())))
    return experiments, Finding.ok(f"{path}, {len(experiments)} experiments")


def _data(
    experiments: dict[str, Any], folder: Path, offline: bool, torchvision: bool
) -> Iterator[tuple[str, Finding]]:
    """The findings of all data sets, each with the names of the experiments on it."""
    users: dict[Any, list[str]] = {}
    for name, experiment in experiments.items():
        users.setdefault(source_of(experiment.data, folder), []).append(name)
    with ThreadPoolExecutor(len(users) or 1) as pool:
        statuses = pool.map(lambda source: guarded(partial(source.status, offline, torchvision)), users)
        for (source, names), status in zip(users.items(), statuses, strict=True):
            text = f"{status.text} ({', '.join(names)})"
            yield f"data: {source.name}", Finding(status.condition, text, status.remedy)
