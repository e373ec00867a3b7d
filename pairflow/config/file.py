"""Reads workflow_config.yaml and the files in recipes/ and experiments/ next to it; composes new ones.

The files in recipes/ come with pairflow; the files in experiments/ are the user's.
"""

import functools
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from pairflow import files
from pairflow.config.configuration import Configuration, Experiment
from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.settings.check import check, nearest

MOST_BYTES = 2**20  # thirty times the size of the shipped workflow_config.yaml
MOST_VALUES = 10_000  # an alias counts as all values that it repeats: a small file can stand for billions
DEEPEST = 30  # levels of nested lists and mappings
LIKE = "like"
LONGEST = 30  # chain of experiments each of which is like the next
_CHOICES = ("name", "source")  # keys that decide which other keys a mapping has
_LONGEST_NUMBER = 100  # characters
_LONGEST_LINE = 4096  # characters; a list stays on one line
_IN_BRACES = 5  # keys at most in a mapping that is written on one line
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates: impossible in paths and in UTF-8
_YAML = "tag:yaml.org,2002:"
_MERGE = f"{_YAML}merge"  # the tag of the key <<, which may occur more than once
_KINDS = {_MERGE, *(_YAML + name for name in ("null", "bool", "int", "float", "str", "seq", "map"))}


def read_text(path: Path) -> str:
    """Read the text of a configuration file. Raises InputError if it is missing or cannot be read."""
    if not path.exists():
        advice = "run the command in the workflow's folder, or name the file with --config"
        raise InputError(f"{path}: no such file; {advice}")
    return files.read_text(path, MOST_BYTES)


class _Loader(yaml.SafeLoader):
    """Loads YAML with only the values of JSON: text, numbers, booleans, null, lists, mappings with text keys.

    Values are checked and counted before Python objects are made of them. Duplicate keys are errors: YAML
    would silently drop the first one.
    """

    def __init__(self, text: str):
        super().__init__(text)
        self.values = self.depth = 0
        self.sizes: dict[yaml.Node, int] = {}  # finished node -> the number of values in it

    def compose_node(self, parent: yaml.Node | None, index: int) -> Any:
        event, before = self.peek_event(), self.values
        self._require(self.depth < DEEPEST, f"more than {DEEPEST} levels", event)
        # These are explicit tags; `_require_plain` checks implicit ones, such as that of a date.
        self._require(getattr(event, "tag", None) is None, "a tag (!), which no setting needs", event)
        self.depth += 1
        node: Any = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            self._require(node in self.sizes, f"*{event.anchor} inside its own definition", event)
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
                self._require(not twice, f"the key '{key.value}' occurs twice in one mapping", key)
                seen.add(key.value)
        elif kind == "str":
            self._require(not _NO_TEXT.search(text), "a character that is no text", node)
        elif kind in ("int", "float"):
            problem = f"a number of {len(text):,} characters; expected at most {_LONGEST_NUMBER}"
            self._require(len(text) <= _LONGEST_NUMBER, problem, node)

    @staticmethod
    def _require(holds: bool, problem: str, location: Any) -> None:
        if not holds:
            raise yaml.composer.ComposerError(None, None, problem, location.start_mark)


def load(text: str, path: Path) -> Any:
    """Return the value of the YAML text of the file `path`. Raises InputError, which names the line, if it is
    not valid."""
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        location = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        problem = " ".join(filter(None, (error.context, error.problem)))
        raise InputError(f"{path}: not YAML: {problem}{location}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def parse(text: str, path: Path, known: Mapping[str, object] = MappingProxyType({})) -> Json:
    """Return the settings in the YAML text of the file `path`, with experiments that have the key `like`
    completed. Raises InputError unless they are a valid configuration.

    `known` are experiments of other files, which `like` may name.
    """
    values = load(text, path)
    if not isinstance(values, dict):
        kind = type(values).__name__
        raise InputError(f"{path}: expected a mapping with the key 'experiments', found {kind}")
    values = _complete(values, known, path)
    check(Configuration, values, path)
    return values


def _complete(values: Json, known: Mapping[str, object], origin: str | Path) -> Json:
    """Return `values`, the content of a file, in which each experiment with the key `like` is completed by
    the one that it names; unchanged if there are no experiments. See `complete_likes`."""
    experiments = values.get("experiments")
    if not isinstance(experiments, dict):
        return values
    return {**values, "experiments": complete_likes(experiments, known, origin)}


def complete_likes(
    experiments: Mapping[str, object], known: Mapping[str, object], origin: str | Path
) -> Json:
    """Return the entries of `experiments`, those with the key `like` completed by the entry that it names.

    `known` are complete entries of other files. Raises InputError, which begins with `origin`, if there is no
    experiment of that name, or if the entries name each other in a circle.
    """
    entries = {**known, **experiments}

    def complete(name: str, chain: tuple[str, ...]) -> object:
        entry = entries[name]
        if not isinstance(entry, dict) or LIKE not in entry:
            return entry
        other, key = entry[LIKE], f"{origin}: experiments.{name}.{LIKE}"
        if not isinstance(other, str) or other not in entries:
            raise InputError(f"{key}: no experiment '{other}'{nearest(str(other), entries)}")
        if len(chain) == LONGEST:
            raise InputError(f"{key}: a circle, or a chain of more than {LONGEST} experiments")
        changes = {key: value for key, value in entry.items() if key != LIKE}
        return merge(complete(other, (*chain, name)), changes)

    return {name: complete(name, ()) for name in experiments}


def merge(settings: object, changes: object) -> object:
    """Return settings with changes: mappings are merged, other values replaced; null removes a key.

    If a key that decides which other keys there are, such as `name`, gets another value, `changes` replace
    the whole mapping.
    """
    if not (isinstance(settings, dict) and isinstance(changes, dict)):
        return changes
    if any(key in changes and changes[key] != settings.get(key) for key in _CHOICES):
        return changes
    merged = {**settings, **{key: merge(settings.get(key), value) for key, value in changes.items()}}
    return {key: value for key, value in merged.items() if changes.get(key, ...) is not None}


class Workflow(Configuration):
    """The content of workflow_config.yaml, with the experiments of all valid files beside it."""

    mistakes: Mapping[str, str]  # experiment -> what is wrong with its file

    def note_mistakes(self) -> None:
        """Print on stderr which files of experiments are left out, and why."""
        for mistake in dict.fromkeys(self.mistakes.values()):
            _print_once(f"pairflow: note: left out {mistake}")


def read(path: Path) -> Workflow:
    """Read and check a configuration file, together with the recipes and the user's files next to it."""
    return complete(parse(read_text(path), path), path, path)


def experiment_files(path: Path, folder: str = "experiments") -> list[Path]:
    """Return the files *.yaml and *.yml in a folder next to the configuration `path`, sorted."""
    named = (file for file in path.parent.glob(f"{folder}/*") if file.suffix in (".yaml", ".yml"))
    return sorted(file for file in named if not files.is_hidden(file.name))


def all_files(path: Path) -> list[Path]:
    """Return the configuration `path`, the recipes and the user's files, in the order of reading."""
    return [path, *experiment_files(path, "recipes"), *experiment_files(path)]


def complete(values: Json, path: Path, origin: str | Path) -> Workflow:
    """Check the `values` of the configuration `path`, and return them with the experiments of the files in
    recipes/ and experiments/ next to it.

    Raises InputError if `values` are not valid; the message begins with `origin`. A file that is not valid,
    or has an experiment whose name is already used, is left out and listed in the result's `mistakes`.
    """
    values = _complete(values, {}, origin)
    homes = dict.fromkeys(check(Configuration, values, origin).experiments, path)
    experiments = {**values["experiments"]}
    mistakes: dict[str, str] = {}
    for file in all_files(path)[1:]:
        try:
            added = _read_experiments(file, homes, experiments)
        except InputError as mistake:
            mistakes |= dict.fromkeys({file.stem, *names_in(file)}, str(mistake))
        else:
            homes |= dict.fromkeys(added, file)
            experiments |= added
    return check(Workflow, {**values, "experiments": experiments, "mistakes": mistakes}, origin)


def _read_experiments(file: Path, homes: dict[str, Path], known: Mapping[str, object]) -> Json:
    """Return the experiments in a file, by name. Raises InputError unless it is valid and none of its names
    is in `homes`.

    For the experiments read before, `homes` is a dict from name to file, and `known` a dict from name to
    settings.
    """
    values = parse(read_text(file), file, known)
    if others := [key for key in values if key != "experiments"]:
        raise InputError(f"{file}: expected only the key 'experiments', found '{others[0]}'")
    if twice := [name for name in values["experiments"] if name in homes]:
        home = homes[twice[0]]
        raise InputError(f"{file}: the experiment '{twice[0]}' is also in {home}; rename one of them")
    return values["experiments"]


def names_in(file: Path) -> set[str]:
    """Return the names of the experiments in a file; an empty set if it cannot be read."""
    try:
        values = load(read_text(file), file)
    except InputError:
        return set()
    experiments = values.get("experiments") if isinstance(values, dict) else None
    return set(experiments) if isinstance(experiments, dict) else set()


@functools.cache
def _print_once(line: str) -> None:
    """Print a line on stderr, but only once, although Snakemake reads the configuration several times."""
    print(files.escaped(line), file=sys.stderr)


class _Dumper(yaml.SafeDumper):
    """Writes YAML in which a mapping of more than five keys has a line for each key."""

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        if len(node.value) > _IN_BRACES:
            node.flow_style = False
        return node


def experiment_file(configuration: Path, name: str) -> Path:
    """Return the path of the file for a new experiment `name`: in experiments/ next to the configuration."""
    return configuration.parent / "experiments" / f"{name}.yaml"


def require_free(configuration: Path, name: str, force: bool) -> None:
    """Raise InputError if the experiment `name` or its file in experiments/ exists already.

    `force` allows it if the file has no other experiment.
    """
    workflow = read(configuration)
    if name in workflow.mistakes:
        raise InputError(workflow.mistakes[name])
    workflow.note_mistakes()
    for file in all_files(configuration):
        names, is_target = names_in(file), file == experiment_file(configuration, name)
        replaceable = is_target and names == {name}
        if (is_target or name in names) and not (force and replaceable):
            reason = f"there is an experiment '{name}'" if name in names else "there are other experiments"
            advice = "give another --name" + ", or --force" * replaceable
            raise InputError(f"{file}: {reason} already; {advice}")


def describe(configuration: Path, name: str, values: Json, comment: str) -> str:
    """Compose the YAML text of the file of the experiment `name`, which has the settings `values`. Raises
    InputError if they are not valid.

    `comment` is one line, which the text has above the experiment.
    """
    write = functools.partial(yaml.dump, Dumper=_Dumper, allow_unicode=True, width=_LONGEST_LINE)
    entry = write({"experiments": {name: values}}, default_flow_style=None, sort_keys=False)
    text = f"# yaml-language-server: $schema=../config/schema.json\n# {comment}\n{entry}"
    parse(text, experiment_file(configuration, name))
    return text


def schema() -> str:
    """Return the JSON schema of the configuration, for editors: the content of `config/schema.json`."""
    values = Configuration.model_json_schema()
    [(pattern, whole)] = values["properties"]["experiments"]["patternProperties"].items()
    name = {
        "type": "string",
        "description": "Another experiment: this one has its settings, except the ones given here.",
    }
    like = {"type": "object", "properties": {LIKE: name}, "required": [LIKE]}
    values["properties"]["experiments"]["patternProperties"] = {pattern: {"anyOf": [whole, like]}}
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def experiment(configuration: Workflow, name: str, path: Path) -> Experiment:
    """Return the experiment `name`. Raises InputError, with the most similar name, if it does not exist, or
    if its file is not valid. `path` is the configuration's file, for messages."""
    if name in configuration.mistakes:
        raise InputError(configuration.mistakes[name])
    configuration.note_mistakes()
    if name not in configuration.experiments:
        names = configuration.experiments
        raise InputError(f"{path}: no experiment '{name}'{nearest(name, names)}: it has {', '.join(names)}")
    return configuration.experiments[name]


if __name__ == "__main__":
    print(schema(), end="")
