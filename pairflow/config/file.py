"""Reads workflow_config.yaml, and the experiments in files of their own beside it."""

import json
from pathlib import Path
from typing import Any

import yaml

from pairflow.config.check import check, nearest
from pairflow.config.experiment import Configuration, Experiment
from pairflow.errors import InputError

_MERGE = "tag:yaml.org,2002:merge"  # of the key <<, which may stand more than once


def read_text(path: Path) -> str:
    """The text of the file; InputError if it is missing or cannot be read."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        advice = "run the command in the workflow's folder, or name the file with --config"
        raise InputError(f"{path}: no such file; {advice}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable configuration: {error}") from None


class _Loader(yaml.SafeLoader):
    """YAML in which a key stands once: of two experiments of one name, one would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != _MERGE:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' stands twice in one mapping", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load(text: str, path: Path) -> Any:
    """The values of YAML text from the file `path`; InputError with the place where it is not valid."""
    try:
        return _Loader(text).get_single_data()
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def parse(text: str, path: Path) -> dict[str, Any]:
    """The values of the text of the file `path`; InputError unless they are a valid configuration."""
    values = load(text, path)
    if not isinstance(values, dict):
        kind = type(values).__name__
        raise InputError(f"{path}: expected a mapping with the key 'experiments', found {kind}")
    check(Configuration, values, path)
    return values


def read(path: Path) -> Configuration:
    """The checked configuration of a file, with the experiments in files of their own."""
    return complete(parse(read_text(path), path), path, path)


def own_files(path: Path) -> list[Path]:
    """The files of experiments beside the configuration `path`: experiments/*.yaml."""
    return sorted(file for file in path.parent.glob("experiments/*") if file.suffix in (".yaml", ".yml"))


def complete(values: dict[str, Any], path: Path, origin: str | Path) -> Configuration:
    """The checked `values` of the configuration `path`, with the experiments in files of their own.

    `origin` begins the message where `values` are not valid. Raises InputError for a file that is not valid,
    and for a name that is there twice.
    """
    homes = dict.fromkeys(check(Configuration, values, origin).experiments, path)
    experiments = {**values["experiments"]}
    for file in own_files(path):
        own = parse(read_text(file), file)
        if others := [key for key in own if key != "experiments"]:
            raise InputError(f"{file}: expected only the key 'experiments', found '{others[0]}'")
        for name, experiment in own["experiments"].items():
            if name in homes:
                raise InputError(
                    f"{file}: the experiment '{name}' is also in {homes[name]}; rename one of them"
                )
            homes[name], experiments[name] = file, experiment
    return check(Configuration, {**values, "experiments": experiments}, origin)


def schema() -> str:
    """The JSON schema of the configuration: `config.schema.json`, by which editors complete keys."""
    return json.dumps(Configuration.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def experiment(configuration: Configuration, name: str, path: Path) -> Experiment:
    """The experiment of that name; InputError with the nearest one where there is none."""
    if name not in configuration.experiments:
        names = configuration.experiments
        raise InputError(f"{path}: no experiment '{name}'{nearest(name, names)}: it has {', '.join(names)}")
    return configuration.experiments[name]


if __name__ == "__main__":
    print(schema(), end="")
