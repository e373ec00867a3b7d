"""Reads the folders of a comparison as finished experiments, and finds the settings in which they differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pairflow.artifacts import digest, require_apart, resolved
from pairflow.config import nearest
from pairflow.errors import InputError
from pairflow.plan import paths
from pairflow.report.results import METRICS, FinishedExperiment, read_finished, read_logs


def place_numbers(page: Path, folders: Sequence[Path]) -> Path:
    """Return the path of the file of numbers next to a page.

    Raises InputError if either file would replace a file of an experiment in `folders`, or if the page is not
    named .html.
    """
    if page.suffix != ".html":
        raise InputError(f"--out {page}: expected a name that ends in .html")
    numbers = page.with_suffix(".parquet")
    names = ("report.html", METRICS, "timings.parquet")
    inputs = [folder / name for folder in folders for name in names]
    require_apart({"--out": page, "the numbers of --out,": numbers}, inputs)
    return numbers


def read_folders(folders: Sequence[Path]) -> list[FinishedExperiment]:
    """Read finished experiments, named as their folders, or by their paths if folders have the same name.
    Raises InputError if a folder is named twice, or is not a finished experiment."""
    real = [resolved(folder) for folder in folders]
    for folder, count in Counter(real).items():
        if count > 1:
            raise InputError(f"{folders[real.index(folder)]}: named twice")
    names = Counter(path.name for path in real)
    return [
        _read(folder, path.name if names[path.name] == 1 else folder.as_posix())
        for folder, path in zip(folders, real, strict=True)
    ]


def _read(folder: Path, name: str) -> FinishedExperiment:
    """Read an experiment, which the page calls `name`. Raise InputError if its report's files are missing, or
    a metric's value is there twice."""
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


def require_comparable(method: str | None, runs: Sequence[FinishedExperiment]) -> None:
    """Raise InputError if the experiments have different data, or if `method` cannot be the baseline: it must
    be a method of a single experiment."""
    first, *others = runs
    if reason := next(filter(None, (explain_difference(first, other) for other in others)), ""):
        raise InputError(f"expected experiments on the same data: {reason}")
    methods = first.experiment.methods
    if method is not None and others:
        raise InputError(
            "--baseline: only for a single folder; of several folders the first one is the baseline"
        )
    if method is not None and method not in methods:
        hint = nearest(method, methods)
        raise InputError(f"--baseline {method}: not a method of {first.name}{hint}: {', '.join(methods)}")


def explain_difference(one: FinishedExperiment, other: FinishedExperiment) -> str:
    """Return why the numbers of two experiments do not compare; the text is empty if they do."""
    ours, theirs = (
        dict(_flatten({"data": run.experiment.data.model_dump(mode="json")})) for run in (one, other)
    )
    for key in dict.fromkeys(["data.source", *ours, *theirs]):
        values = [settings.get(key, "not set") for settings in (ours, theirs)]
        if values[0] != values[1]:
            return f"{key} is {_text(values[1])} in {other.name} and {_text(values[0])} in {one.name}"
    if one.train_digest and other.train_digest and one.train_digest != other.train_digest:
        return f"{other.name} and {one.name} have the same settings, but different training rows"
    return ""


def differing_settings(runs: Sequence[FinishedExperiment]) -> dict[str, list[str]]:
    """Return {key: its values in all experiments, in words} for the settings that differ between them.

    `methods` and `pairs` come last, because they do not change how a method is trained.
    """
    flat = [dict(_flatten(run.experiment.model_dump(mode="json"))) for run in runs]
    keys = dict.fromkeys(key for settings in flat for key in settings if key != "description")
    ordered = sorted(keys, key=lambda key: key.partition(".")[0] in ("methods", "pairs"))
    texts = {key: [_text(settings[key]) if key in settings else "–" for settings in flat] for key in ordered}
    return {key: values for key, values in texts.items() if len(set(values)) > 1}


def _flatten(settings: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
