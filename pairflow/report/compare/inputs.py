"""The folders that a comparison is asked for, as finished experiments, and where its numbers go."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pairflow.artifacts import digest, resolved
from pairflow.config import nearest
from pairflow.errors import InputError
from pairflow.plan import paths
from pairflow.report.results import FinishedExperiment, read_finished, read_logs

METRICS = "metrics.parquet"


def place_numbers(page: Path, folders: Sequence[Path]) -> Path:
    """The file of numbers beside a page; InputError if either would replace a file of an experiment."""
    if page.suffix != ".html":
        raise InputError(f"--out {page}: expected a name that ends in .html")
    numbers = page.with_suffix(".parquet")
    for folder in folders:
        for name in ("report.html", METRICS, "timings.parquet"):
            if resolved(folder / name) in (resolved(page), resolved(numbers)):
                raise InputError(f"--out {page}: would replace {folder / name}; choose another name")
    return numbers


def read_folders(folders: Sequence[Path]) -> list[FinishedExperiment]:
    """Finished experiments under the names of their folders, or their paths where two names are the same."""
    places = [resolved(folder) for folder in folders]
    for folder, count in Counter(places).items():
        if count > 1:
            raise InputError(f"{folders[places.index(folder)]}: named twice")
    names = Counter(place.name for place in places)
    return [
        _read(folder, place.name if names[place.name] == 1 else folder.as_posix())
        for folder, place in zip(folders, places, strict=True)
    ]


def _read(folder: Path, name: str) -> FinishedExperiment:
    """A finished experiment; InputError unless its folder has what the report wrote, each value once."""
    if not folder.is_dir():
        problem = "is a file, expected the folder of an experiment" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {problem}")
    path = folder / METRICS
    if not path.is_file():
        raise InputError(f"{folder}: not a finished experiment: it has no {METRICS}, which the report writes")
    tokens = paths.data(folder, "train.parquet")
    run = read_finished(folder, name)
    logs = read_logs(folder, run.experiment)
    run = replace(run, train_digest=digest(tokens) if tokens.is_file() else None, logs=logs)
    if run.repeated:
        raise InputError(f"{path}: has two values of {run.repeated}")
    return run


def require_baseline(method: str | None, runs: Sequence[FinishedExperiment]) -> None:
    """InputError unless the method can be the baseline, or is None."""
    methods = runs[0].experiment.methods
    if method is not None and len(runs) > 1:
        raise InputError(
            "--baseline: only for a single folder; of several folders the first one is the baseline"
        )
    if method is not None and method not in methods:
        hint = nearest(method, methods)
        raise InputError(f"--baseline {method}: not a method of {runs[0].name}{hint}: {', '.join(methods)}")


def find_equal(runs: Sequence[FinishedExperiment], digests: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of experiments whose metric files have the same bytes."""
    return [
        (runs[digests.index(own)].name, run.name)
        for i, (run, own) in enumerate(zip(runs, digests, strict=True))
        if digests.index(own) < i
    ]
