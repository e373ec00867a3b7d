"""Writes one experiment as a file of its own, experiments/<name>.yaml, beside workflow_config.yaml."""

from pathlib import Path
from typing import Any

import yaml

from pairflow.config.file import names_in, own_files, parse, read
from pairflow.errors import InputError

_LONGEST_LINE = 4096  # characters; a list stays on one line
_IN_BRACES = 5  # keys at most in a mapping that is written on one line


class _Dumper(yaml.SafeDumper):
    """YAML with a line for each key of a long mapping."""

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        if len(node.value) > _IN_BRACES:
            node.flow_style = False
        return node


def place(configuration: Path, name: str) -> Path:
    """The file of an experiment, beside the configuration."""
    return configuration.parent / "experiments" / f"{name}.yaml"


def require_free(configuration: Path, name: str, force: bool) -> None:
    """InputError if there is an experiment of that name; `force` allows one that only its own file holds."""
    workflow = read(configuration)
    if name in workflow.mistakes:
        raise InputError(workflow.mistakes[name])
    workflow.note_mistakes()
    for file in (configuration, *own_files(configuration)):
        names, is_target = names_in(file), file == place(configuration, name)
        replaceable = is_target and names == {name}
        if (is_target or name in names) and not (force and replaceable):
            found = f"there is an experiment '{name}'" if name in names else "there are other experiments"
            advice = "give another --name" + ", or --force" * replaceable
            raise InputError(f"{file}: {found} already; {advice}")


def describe(configuration: Path, name: str, experiment: dict[str, Any], comment: str) -> str:
    """The text of an experiment's file; `comment` is one line. InputError if the experiment is not valid."""
    form: Any = {"default_flow_style": None, "width": _LONGEST_LINE, "sort_keys": False}
    entry = yaml.dump({"experiments": {name: experiment}}, Dumper=_Dumper, allow_unicode=True, **form)
    schema = "# yaml-language-server: $schema=../config.schema.json"
    text = f"{schema}\n# {comment}\n{entry}"
    parse(text, place(configuration, name))
    return text
