"""Adds one experiment to the text of workflow_config.yaml; comments and the order of keys survive."""

import io
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from pairflow.config.file import parse
from pairflow.errors import InputError

_LONGEST_LINE = 4096  # characters; a list stays on one line
_NULL = "tag:yaml.org,2002:null"  # ruamel.yaml would write nothing for it
_IN_BRACES = 5  # keys at most in a mapping that is written on one line


def require_free(text: str, name: str, path: Path) -> None:
    """InputError if `text`, of the file `path`, is no valid configuration or has such an experiment."""
    if name in parse(text, path)["experiments"]:
        raise InputError(f"{path}: there is an experiment '{name}' already; give another --name, or --force")


def append(text: str, name: str, experiment: dict[str, Any], comment: str, path: Path) -> str:
    """`text` with the experiment at the end of `experiments`, or in the place of its namesake.

    `comment`, one line, goes below the name; `path` is for messages. Values, comments and order of everything
    else are checked to be those of `text`; a list that spans several lines is joined into one.

    Raises InputError if `text` is no valid configuration, or if the result would not be one.
    """
    before = parse(text, path)
    round_trip = YAML()
    round_trip.preserve_quotes = True
    round_trip.width = _LONGEST_LINE
    round_trip.representer.add_representer(
        type(None), lambda writer, _: writer.represent_scalar(_NULL, "null")
    )
    document = round_trip.load(text.replace("\r\n", "\n"))
    experiments = document["experiments"]
    # ruamel.yaml attaches the comments below an entry to its last value: they move to the new last entry.
    last = experiments[name if name in experiments else list(experiments)[-1]]
    below = _cut_comments(last, last.lc.col)
    # PyYAML, which reads the configuration, decides which strings need quotes.
    entry = yaml.safe_dump({name: experiment}, sort_keys=False, allow_unicode=True, default_flow_style=None)
    blank_line = None if name in experiments else "\n"
    if name in experiments:
        experiments.ca.items.get(name, [None] * 4)[3] = None  # what stood below its name
    indent = experiments.lc.col + 2
    experiments.yaml_set_comment_before_after_key(name, blank_line, after=comment, after_indent=indent)
    [(key, loaded)] = round_trip.load(entry + below).items()
    experiments[key] = _unfolded(loaded)
    output = io.StringIO()
    round_trip.dump(document, output)
    result = output.getvalue().replace("\n", "\r\n" if "\r\n" in text else "\n")
    if parse(result, path) != {**before, "experiments": {**before["experiments"], name: experiment}}:
        raise InputError(
            f"{path}: pairflow cannot add the experiment to this file; add these lines yourself:\n{entry}"
        )
    return result


def _unfolded(node: Any) -> Any:
    """The same YAML node, with a line for each key of its long mappings."""
    if isinstance(node, CommentedMap):
        if len(node) > _IN_BRACES:
            node.fa.set_block_style()
        for value in node.values():
            _unfolded(value)
    return node


def _cut_comments(experiment: CommentedMap, indent: int) -> str:
    """Remove and return the lines below an experiment: blank ones, comments indented less than its keys."""
    node: Any = experiment
    while True:
        last = len(node) - 1 if isinstance(node, CommentedSeq) else list(node)[-1]
        value = node[last]
        if not isinstance(value, CommentedMap | CommentedSeq) or not value or value.fa.flow_style():
            break
        node = value
    token = (node.ca.items.get(last) or [None] * 4)[0 if isinstance(node, CommentedSeq) else 2]
    lines = token.value.splitlines(keepends=True) if token else []
    own = [number for number, line in enumerate(lines, 1) if line.startswith(" " * indent)]
    end = max([1, *own])
    if token:
        token.value = "".join(lines[:end])
    return "".join(lines[end:])
