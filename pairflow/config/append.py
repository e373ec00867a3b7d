"""One more experiment in the text of workflow_config.yaml, whose comments and order stay as they are."""

import re
from pathlib import Path
from typing import Any

import yaml

from pairflow.config.file import parse
from pairflow.errors import InputError

_WIDTH = 95  # PyYAML breaks a line after the word that goes beyond


def require_free(text: str, name: str, path: Path) -> None:
    """InputError if `text`, of the file `path`, is no valid configuration or has such an experiment."""
    if name in parse(text, path)["experiments"]:
        raise InputError(f"{path}: there is an experiment '{name}' already; give another --name, or --force")


def append(text: str, name: str, experiment: dict[str, Any], comment: str, path: Path) -> str:
    """`text` with the experiment at the end of `experiments`, or in place of its namesake.

    `comment`, one line, goes below the name; `path` is for messages. The result has been checked: it is a
    valid configuration, with all else as it was.

    Raises InputError if `text` is no valid configuration, or if its experiments are written in braces.
    """
    before = parse(text, path)
    node = _experiments(text, path)
    start, end = _place(text, node, name)
    entry = _entry(name, experiment, comment, node.start_mark.column)
    head, tail = text[:start], text[end:]
    if start == end:
        entry = ("\n" if head.endswith("\n") else "\n\n") + entry + ("\n" if tail else "")
    result = head + entry.replace("\n", "\r\n" if "\r\n" in text else "\n") + tail
    if parse(result, path) != {**before, "experiments": {**before["experiments"], name: experiment}}:
        raise InputError(f"{path}: cannot be extended by a program; add this by hand:\n{entry}")
    return result


def _experiments(text, path):
    """The YAML node of the mapping of experiments."""
    root = yaml.compose(text, yaml.SafeLoader)
    node = next(value for key, value in root.value if key.value == "experiments")
    if node.flow_style or root.flow_style:
        raise InputError(f"{path}: the experiments are written in braces; expected one below the other")
    return node


def _place(text, node, name):
    """Where the entry goes: the range of the old one, or the end of the experiments (an empty range)."""
    keys = [key for key, _ in node.value]
    places = [_line_start(text, key.start_mark.index) for key in keys]
    places.append(_end(text, places[-1], node.start_mark.column))
    for key, start, end in zip(keys, places, places[1:], strict=False):
        if key.value == name:
            return start, _before_comments(text, start, end)
    end = places[-1]
    if end < len(text):
        end = _before_comments(text, places[-2], end)
    return end, end


def _line_start(text, index):
    return text.rfind("\n", 0, index) + 1


def _end(text, start, indent):
    """The first line below `start` that is indented less than the experiments, comments aside."""
    for line in re.finditer(r"^(?P<indent> *)[^\s#].*$", text[start:], re.MULTILINE):
        if len(line["indent"]) < indent:
            return start + line.start()
    return len(text)


def _before_comments(text, start, end):
    """`end`, moved up over blank lines and comments, which belong to what comes after them."""
    lines = text[start:end].splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        end -= len(lines.pop())
    return end


def _entry(name, experiment, comment, indent):
    body = yaml.safe_dump(
        {name: experiment},
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=_WIDTH - indent,
    )
    first, *rest = body.splitlines()
    return "".join(f"{' ' * indent}{line}\n" for line in (first, f"  # {comment}", *rest))
