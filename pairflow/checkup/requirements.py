"""All checks of `pairflow doctor`, in the order in which it shows them."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pairflow.checkup import machine
from pairflow.checkup.packages import CORE, PACKAGES, check, python
from pairflow.config.file import experiment_file, read
from pairflow.data.status import Condition, Finding, described
from pairflow.errors import InputError
from pairflow.kinds import kind_of, source_of


def findings(configuration: Path, offline: bool = False) -> Iterator[tuple[str, Finding]]:
    """Check all requirements, and the data sets of the file `configuration`. Yields each name and finding.

    Packages and data sets that the user's own experiments need come first. An error in a check becomes its
    finding. Each program, import and address has a time limit.
    """
    experiments, settings = _configuration(configuration)
    experiments = dict(
        sorted(experiments.items(), key=lambda item: not experiment_file(configuration, item[0]).is_file())
    )
    kinds = dict.fromkeys(kind_of(experiment.data) for experiment in experiments.values())
    needed = [name for kind in kinds for name in kind.packages]
    names = [*dict.fromkeys([*needed, *PACKAGES])]
    driver, gpus = machine.driver()

    def imported(name: str) -> Finding:
        package = PACKAGES[name]
        return guarded(partial(check, package, package.needed or name in needed, bool(gpus)))

    with ThreadPoolExecutor(len(PACKAGES)) as pool:  # all are imported at the same time
        packages = dict(zip(names, pool.map(imported, names), strict=True))
    yield "Python", guarded(python)
    yield from packages.items()
    results = configuration.parent / "results"
    requirements: dict[str, Callable[[], Finding]] = {
        "GPU driver": lambda: driver,
        "snakemake on the PATH": machine.snakemake,
        "results folder": partial(
            machine.writable, results, f"mkdir $HOME/results && ln -s $HOME/results {results}"
        ),
    }
    for variable, usual in (("TMPDIR", "/tmp"), ("XDG_CACHE_HOME", "~/.cache")):
        folder = Path(os.environ.get(variable) or usual).expanduser()
        requirements[variable] = partial(machine.writable, folder, f"export {variable}=<a folder>")
    requirements |= {"memory": machine.memory, "cores": machine.cores, "configuration": lambda: settings}
    for name, look in requirements.items():
        yield name, guarded(look)
    if packages[CORE].condition is Condition.OK:
        yield from _data(experiments, configuration.parent, offline)
    elif experiments:
        yield "data", Finding.optional(f"not checked, because the {CORE} cannot be imported")


def guarded(look: Callable[[], Finding]) -> Finding:
    """Run the check `look` and return its finding, or a finding about the error that it raises."""
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


def _data(experiments: dict[str, Any], folder: Path, offline: bool) -> Iterator[tuple[str, Finding]]:
    """Check all data sets. Yields a name and a finding for each, with the experiments that use it."""
    users: dict[Any, list[str]] = {}
    for name, experiment in experiments.items():
        users.setdefault(source_of(experiment.data, folder), []).append(name)
    with ThreadPoolExecutor(len(users) or 1) as pool:
        statuses = pool.map(lambda source: guarded(partial(source.status, offline)), users)
        for (source, names), status in zip(users.items(), statuses, strict=True):
            text = f"{status.text} ({', '.join(names)})"
            yield f"data: {source.name}", Finding(status.condition, text, status.remedy)
