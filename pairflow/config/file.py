"""Reads workflow_config.yaml, and reads and writes the experiments in files of their own beside it."""

import functools
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pairflow import files
from pairflow.config.check import check, nearest
from pairflow.config.experiment import Configuration, Experiment
from pairflow.errors import InputError

MOST_BYTES = 2**20  # thirty times what the shipped experiments take
MOST_VALUES = 10_000  # every value counts as often as aliases and merges repeat it
DEEPEST = 30  # levels
_LONGEST_NUMBER = 100  # characters
_LONGEST_LINE = 4096  # characters; a list stays on one line
_IN_BRACES = 5  # keys at most in a mapping that is written on one line
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # what neither a path nor a file can hold
_YAML = "tag:yaml.org,2002:"
_MERGE = f"{_YAML}merge"  # of the key <<, which may stand more than once
_KINDS = {_MERGE, *(_YAML + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))}


def read_text(path: Path) -> str:
    """The text of the file; InputError if it is missing or cannot be read."""
    if not path.exists():
        advice = "run the command in the workflow's folder, or name the file with --config"
        raise InputError(f"{path}: no such file; {advice}")
    return files.read_text(path, MOST_BYTES)


class _Loader(yaml.SafeLoader):
    """The YAML that JSON can hold: text, numbers, booleans, null, lists, and mappings with keys of text.

    Every value is checked, and counted, before it is made. A key stands once, so that no experiment is lost.
    """

    def __init__(self, text: str):
        super().__init__(text)
        self.values = self.depth = 0
        self.sizes: dict[yaml.Node, int] = {}  # how many values each finished node stands for

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        event, before = self.peek_event(), self.values
        self._require(self.depth < DEEPEST, f"more than {DEEPEST} levels", event)
        self._require(getattr(event, "tag", None) is None, "a tag (!), which no setting needs", event)
        self.depth += 1
        node: Any = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            self._require(node in self.sizes, f"*{event.anchor} inside of what it stands for", event)
            self.values += self.sizes[node]
        else:
            self._require_plain(node)
            self.values += 1
            self.sizes[node] = self.values - before
        self._require(self.values <= MOST_VALUES, f"more than {MOST_VALUES:,} values", event)
        return node

    def _require_plain(self, node: yaml.Node) -> None:
        text, kind = node.value, node.tag.removeprefix(_YAML)
        self._require(node.tag in _KINDS, f"{text} is a {kind}; put it in quotes", node)
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, _ in text:
                is_text = key.tag in (f"{_YAML}str", _MERGE)
                self._require(is_text, "a key that is no text; put it in quotes", key)
                twice = key.value in seen and key.tag != _MERGE
                self._require(not twice, f"the key '{key.value}' stands twice in one mapping", key)
                seen.add(key.value)
        elif kind == "str":
            self._require(not _NO_TEXT.search(text), "a character that is no text", node)
        elif kind in ("int", "float"):
            problem = f"a number of {len(text):,} characters; expected at most {_LONGEST_NUMBER}"
            self._require(len(text) <= _LONGEST_NUMBER, problem, node)

    @staticmethod
    def _require(holds: bool, problem: str, place: Any) -> None:
        if not holds:
            raise yaml.composer.ComposerError(None, None, problem, place.start_mark)


def load(text: str, path: Path) -> Any:
    """The values of YAML text from the file `path`; InputError with the line where it is not valid."""
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        place = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        problem = " ".join(filter(None, (error.context, error.problem)))
        raise InputError(f"{path}: not YAML: {problem}{place}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def parse(text: str, path: Path) -> dict[str, Any]:
    """The values of the text of the file `path`; InputError unless they are a valid configuration."""
    values = load(text, path)
    if not isinstance(values, dict):
        kind = type(values).__name__
        raise InputError(f"{path}: expected a mapping with the key 'experiments', found {kind}")
    check(Configuration, values, path)
    return values


class Workflow(Configuration):
    """The configuration with the experiments in files of their own, as far as these files are valid."""

    mistakes: Mapping[str, str]  # experiment -> what is wrong with the file that it is, or may be, in

    def note_mistakes(self) -> None:
        """Say on stderr which files of experiments are left out, and why."""
        for mistake in dict.fromkeys(self.mistakes.values()):
            _say(f"pairflow: note: left out {mistake}")


def read(path: Path) -> Workflow:
    """The checked configuration of a file, with the experiments in files of their own."""
    return complete(parse(read_text(path), path), path, path)


def own_files(path: Path) -> list[Path]:
    """The files of experiments beside the configuration `path`: experiments/*.yaml."""
    return sorted(file for file in path.parent.glob("experiments/*") if file.suffix in (".yaml", ".yml"))


def complete(values: dict[str, Any], path: Path, origin: str | Path) -> Workflow:
    """The checked `values` of the configuration `path`, with the experiments in files of their own.

    `origin` begins the message where `values` are not valid; InputError is raised for these only. A file of
    its own that is not valid, or has a name that is there twice, is left out, and among the `mistakes`.
    """
    homes = dict.fromkeys(check(Configuration, values, origin).experiments, path)
    experiments = {**values["experiments"]}
    mistakes: dict[str, str] = {}
    for file in own_files(path):
        try:
            own = _own_experiments(file, homes)
        except InputError as mistake:
            mistakes |= dict.fromkeys({file.stem, *names_in(file)}, str(mistake))
        else:
            homes |= dict.fromkeys(own, file)
            experiments |= own
    return check(Workflow, {**values, "experiments": experiments, "mistakes": mistakes}, origin)


def _own_experiments(file: Path, homes: dict[str, Path]) -> dict[str, Any]:
    """The experiments of a file of its own; InputError unless it is valid, and no name is in another file."""
    own = parse(read_text(file), file)
    if others := [key for key in own if key != "experiments"]:
        raise InputError(f"{file}: expected only the key 'experiments', found '{others[0]}'")
    if twice := [name for name in own["experiments"] if name in homes]:
        home = homes[twice[0]]
        raise InputError(f"{file}: the experiment '{twice[0]}' is also in {home}; rename one of them")
    return own["experiments"]


def names_in(file: Path) -> set[str]:
    """The names of the experiments in a file, as far as it can be read."""
    try:
        values = load(read_text(file), file)
    except InputError:
        return set()
    experiments = values.get("experiments") if isinstance(values, dict) else None
    return set(experiments) if isinstance(experiments, dict) else set()


@functools.cache
def _say(line: str) -> None:
    """Print a line on stderr, once in a process: Snakemake reads the configuration again."""
    print(line, file=sys.stderr)


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


def describe(configuration: Path, name: str, values: dict[str, Any], comment: str) -> str:
    """The text of an experiment's file; `comment` is one line. InputError if the experiment is not valid."""
    form: Any = {"default_flow_style": None, "width": _LONGEST_LINE, "sort_keys": False}
    entry = yaml.dump({"experiments": {name: values}}, Dumper=_Dumper, allow_unicode=True, **form)
    text = f"# yaml-language-server: $schema=../config.schema.json\n# {comment}\n{entry}"
    parse(text, place(configuration, name))
    return text


def schema() -> str:
    """The JSON schema of the configuration: `config.schema.json`, by which editors complete keys."""
    return json.dumps(Configuration.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def experiment(configuration: Workflow, name: str, path: Path) -> Experiment:
    """The experiment of that name; InputError with the nearest one where there is none."""
    if name in configuration.mistakes:
        raise InputError(configuration.mistakes[name])
    configuration.note_mistakes()
    if name not in configuration.experiments:
        names = configuration.experiments
        raise InputError(f"{path}: no experiment '{name}'{nearest(name, names)}: it has {', '.join(names)}")
    return configuration.experiments[name]


if __name__ == "__main__":
    print(schema(), end="")
