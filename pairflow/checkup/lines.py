"""The whole check-up, in the order in which it is shown."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pairflow.checkup import data, hardware, software
from pairflow.checkup.line import Line, State, described, guarded
from pairflow.config import Configuration
from pairflow.config.file import read
from pairflow.errors import InputError


def lines(configuration: Path, offline: bool = False) -> Iterator[Line]:
    """A line for each thing that is looked at; `configuration` says which data sets are.

    It raises nothing, and each program, import and address has a limited time.
    """
    try:
        experiments = read(configuration)
        found = f"{configuration}, {len(experiments.experiments)} experiments"
        settings = Line("configuration", State.OK, found)
    except InputError as error:
        experiments = None
        settings = Line("configuration", State.ATTENTION, str(error))
    facts = software.imported()
    yield from _software(facts, experiments)
    folder = configuration.parent
    yield guarded("results folder", lambda: hardware.results(folder))
    yield guarded("memory", hardware.memory)
    yield guarded("cores", hardware.cores)
    yield settings
    if experiments is not None:
        yield from _data(facts, experiments, data.Look(folder, offline, facts[software.TORCHVISION.label]))


def _software(facts: dict[str, dict], experiments: Configuration | None) -> Iterator[Line]:
    kinds = {each.modality for each in experiments.experiments.values()} if experiments else set()
    molecules = "an experiment on molecules" if "molecules" in kinds else ""
    driver, gpus = _driver()
    said = {each.label: facts[each.label] for each in software.PACKAGES}
    looks = {
        "Python": software.python,
        **{
            each.label: lambda each=each, why=why: software.package(each, said[each.label], why)
            for each, why in (
                (software.BASE, ""),
                (software.TORCH, ""),
                (software.TORCHVISION, ""),
                (software.RDKIT, molecules),
            )
        },
        "Snakemake": lambda: software.snakemake(said["Snakemake"]),
        "executor plugin": lambda: software.plugin(said["executor plugin"]),
        "GPU driver": lambda: driver,
        "CUDA": lambda: software.cuda(said["torch"], gpus),
        "CuPy": lambda: software.cupy(said["CuPy"], gpus),
        "NVRTC": lambda: software.nvrtc(said["NVRTC"], said["CuPy"]),
    }
    for name, look in looks.items():
        yield guarded(name, look)


def _driver() -> tuple[Line, list[str]]:
    try:
        return software.driver()
    except Exception as error:
        return Line("GPU driver", State.ATTENTION, described(error), "nvidia-smi"), []


def _data(facts: dict[str, dict], experiments: Configuration, look: data.Look) -> Iterator[Line]:
    if "version" not in facts[software.BASE.label]:
        yield Line("data", State.OPTIONAL, f"not looked at, as {software.BASE.label} do not import")
        return

    def one(used: tuple[tuple[str, str | None], list[str]]) -> Line:
        (source, images), names = used
        found = guarded(f"data: {source}", lambda: data.line(source, images, look))
        return Line(found.name, found.state, f"{found.found} ({', '.join(names)})", found.remedy)

    every = data.used(experiments).items()
    with ThreadPoolExecutor(max(1, len(every))) as pool:
        yield from pool.map(one, every)
