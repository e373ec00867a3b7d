"""Which experiments have the same data, and what differs between their settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pairflow.report.results import FinishedExperiment


def group_by_data(runs: Sequence[FinishedExperiment]) -> list[list[FinishedExperiment]]:
    """The experiments in groups with the same data and the same rules for it, in the order given."""
    groups: list[list[FinishedExperiment]] = []
    for run in runs:
        for group in groups:
            if not explain_difference(group[0], run):
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def explain_difference(one: FinishedExperiment, other: FinishedExperiment) -> str:
    """Why the numbers of two experiments do not compare; empty where they do."""
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
    """Settings that are not the same everywhere: key -> its value in each experiment, in words.

    `methods` and `pairs`, which change no other method, come last.
    """
    flat = [dict(_flatten(run.experiment.model_dump(mode="json"))) for run in runs]
    keys = dict.fromkeys(key for settings in flat for key in settings if key != "description")
    ordered = sorted(keys, key=lambda key: key.partition(".")[0] in ("methods", "pairs"))
    texts = {key: [_text(settings[key]) if key in settings else "–" for settings in flat] for key in ordered}
    return {key: values for key, values in texts.items() if len(set(values)) > 1}


def _flatten(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
