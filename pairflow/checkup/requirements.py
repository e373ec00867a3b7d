"""All checks of `pairflow doctor`, in the order in which it shows them."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pairflow.checkup import machine
from pairflow.checkup.packages import CORE, PACKAGES, check, python
from pairflow.config.experiment import CommonExperiment
from pairflow.config.file import experiment_files, names_in, read
from pairflow.data.source import DataSource, RowFile
from pairflow.data.status import Condition, Finding, described
from pairflow.errors import InputError
from pairflow.kinds import kind_of, source_of


def findings(configuration: Path, offline: bool = False) -> Iterator[tuple[str, Finding]]:
    """Check all requirements, and the data sets of the file `configuration`. Yields each name and finding.

    Packages and data sets that the user's own experiments need come first; the other data sets are one
    finding. An error in a check becomes its finding. Each program, import and address has a time limit.
    """
    experiments, settings = _configuration(configuration)
    own = {name for file in experiment_files(configuration) for name in names_in(file)}
    experiments = dict(sorted(experiments.items(), key=lambda item: item[0] not in own))
    kinds = dict.fromkeys(kind_of(experiment.data) for experiment in experiments.values())
    needed = [name for kind in kinds for name in kind.costs.packages]
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
    """Check all data sets. Yields a name and a finding for each user's file, and for each data set that an
    experiment in `own` needs, with these experiments; and one finding for the other data sets."""
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
    """Return one finding for data sets that only experiments in the configuration itself need."""
    from pairflow.data.download import DATA_DIR  # only here: it needs packages that may be broken

    absent = [name for name, status in statuses.items() if status.condition is not Condition.OK]
    present = [name for name in statuses if name not in absent]
    parts = {"here, or to be downloaded": present, "not here": absent}
    text = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)
    text += f" (only experiments in {configuration.name} need them)"
    if not absent:
        return Finding.ok(text)
    return Finding.optional(text, f"export {DATA_DIR}=<a folder with them>")
