"""Turns a job of the workflow into a call of its command: the options that its rule gives it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pairflow.plan.job import Job

BY_KIND = ("preprocess", "evaluate", "floor")  # commands that take a kind of data
BY_WILDCARD = {"evaluate": ["evaluation"], "diagnose": ["method"]}  # options that are wildcards of the rule
_STORED = ("vocabulary", "known")  # outputs that the folder of another one implies


@dataclass(frozen=True)
class Call:
    """A call of a command of `pairflow`: its name, the arguments before its options, and its options."""

    name: str
    arguments: list[object]
    options: dict[str, object]

    def words(self, **changes: object) -> list[str]:
        """Return what follows `pairflow` in a shell, with some of its options changed."""
        return [self.name, *as_arguments(*self.arguments, **self.options | changes)]


def as_arguments(*arguments: object, **options: object) -> list[str]:
    """Return the words of a command line: the arguments, then the options by their names. An option that is
    True is a flag, and a mapping is written as JSON."""
    words = [str(argument) for argument in arguments]
    for key, value in options.items():
        text = json.dumps(value) if isinstance(value, Mapping) else str(value)
        words += [f"--{key.replace('_', '-')}", *([] if value is True else [text])]
    return words


def call_of(root: Path, job: Job, kind: str) -> Call:
    """Return the call that does a job of the experiment in `root`, as its rule does. `kind` is the name of
    the experiment's kind of data."""
    inputs = {name: path for name, path in job.inputs.items() if isinstance(path, Path)}
    outputs = {name: path for name, path in job.outputs.items() if name not in _STORED}
    options = {name: getattr(job, name) for name in BY_WILDCARD.get(job.rule, ()) if getattr(job, name)}
    if job.settings:
        options["settings"] = job.settings.model_dump(mode="json")
    match job.rule:
        case "preprocess":
            inputs = {name: inputs[name] for name in ("parent_vocabulary",) if name in inputs}
            outputs = dict(job.outputs)
        case "train" if "parent" in inputs:
            inputs["from"] = inputs.pop("parent").parent
            del inputs["parent_description"]
        case "floor":
            options["evaluation"] = job.outputs["metrics"].stem.partition("-")[2]
        case "sample" | "teach" | "correlate":
            tokens = {"tokens": inputs["tokens"]} if job.rule == "correlate" else {}
            inputs = {"model": inputs["model"].parent} | tokens
        case "distill":
            needed = {name: inputs[name] for name in ("data", "validation")}
            inputs = {"parent": inputs["parent"].parent, **needed}
        case "report":
            inputs = {"root": root}
    main = next(iter(outputs)) if len(outputs) == 1 else "page" if "page" in outputs else "metrics"
    written = {"out" if name == main else name: path for name, path in outputs.items()}
    return Call(job.rule, [kind] if job.rule in BY_KIND else [], inputs | written | options)
