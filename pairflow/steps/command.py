"""Turns a settings class into a command: an option per field, `--settings JSON` for all, one-line errors."""

import errno
import functools
import inspect
import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pairflow.config import Settings, check, nearest
from pairflow.errors import InputError, Interrupted
from pairflow.extras import named_extras
from pairflow.files import Json, escaped
from pairflow.kinds import KINDS, load_kind
from pairflow.kinds.kind import AnyKind
from pairflow.runtime import distributed, memory, signals, threads
from pairflow.steps.options import Output, together
from pairflow.training.options import MODEL_FILES

_LONGEST = 2000  # characters of a message
GIVE_WAY = 2.0  # seconds in which torchrun ends all processes of a step if one has failed
RAISES = object()
RANK_0_FIRST = 60.0  # seconds in which process 0 makes the same mistake as another process


class Command(click.Command):
    """A command that prints a user's mistake as one line on stderr, with exit code 2. It ignores SIGUSR1.

    If the object of the context is RAISES, its errors are raised as they are, for a caller in Python.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if self.name != "run":
                raise
            option, similar = error.option_name, error.possibilities
            text = f"No such option '{option}'. Snakemake's options follow `--`: pairflow run qm9 -- {option}"
            raise click.NoSuchOption(option, text, similar, ctx) from None
        except click.UsageError as error:
            if "extra argument" not in error.message:
                raise
            raise click.UsageError(f"{error.message}. Put quotes around a name with spaces", ctx) from None

    def perform(self, ctx: click.Context) -> object:
        """Check the outputs, and run the command. Its errors are raised."""
        _require_free_outputs(ctx)
        memory.keep_freed()
        threads.spin_briefly()
        with signals.for_a_command(), named_extras():
            return super().invoke(ctx)

    def invoke(self, ctx: click.Context) -> object:
        if ctx.find_root().obj is RAISES:
            return self.perform(ctx)
        try:
            return self.perform(ctx)
        except (InputError, OSError) as error:
            text = str(error)
            if isinstance(error, OSError):
                if error.errno not in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG):
                    raise
                text = f"{error.filename}: {error.strerror}"
            elif distributed.rank():
                time.sleep(RANK_0_FIRST)  # usually all processes make it, and only process 0 reports it
            click.echo(f"pairflow {ctx.command.name}: error: {_one_line(text)}", err=True)
            sys.exit(2)
        except Interrupted as stop:
            if distributed.rank() == 0:
                click.echo(f"pairflow {ctx.command.name}: {stop}", err=True)
            signals.leave(stop.signal)
        except KeyboardInterrupt:  # before any work that can be saved, or a second Ctrl-C
            click.echo(f"pairflow {ctx.command.name}: stopped", err=True)
            signals.leave(signal.SIGINT)
        except Exception:
            if distributed.world_size() > 1:
                time.sleep(GIVE_WAY)  # the cause may be that another process has failed
            raise


def _require_free_outputs(ctx: click.Context) -> None:
    """Raise InputError if an output would replace an input, a file of an input model, or another output, or
    if an output or a saved state could not be written."""
    outputs: dict[str, Path] = {}
    values: list[object] = [*_settings_json(ctx.params.get("settings")).values()]
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if isinstance(param.type, Output) and value is not None:
            param.type.require_free(param.opts[0], value)
            outputs[param.opts[0]] = value
        else:
            values += value if isinstance(value, tuple) else [value]
    inputs = [Path(value) for value in values if isinstance(value, str | Path) and _is_there(value)]
    if outputs:
        # Only here, because doctor must start without NumPy.
        from pairflow.artifacts import require_apart, require_writable

        if resume := ctx.params.get("resume"):
            require_writable(resume, folder=True)
        require_apart(outputs, [*inputs, *(folder / name for folder in inputs for name in MODEL_FILES)])


def _is_there(value: str | Path) -> bool:
    """Return whether a path exists, or a text names an existing file. Raises InputError for a path that the
    system refuses, such as a name that is too long."""
    try:
        # A text such as the method `udlm` must not count as a folder of that name.
        return value.exists() if isinstance(value, Path) else Path(value).is_file()
    except OSError as error:
        if isinstance(value, Path):
            raise InputError(f"{value}: {error.strerror}") from None
        return False


def _one_line(message: str) -> str:
    """Return the message shortened, and without line ends and control characters."""
    text = escaped(message)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def step(
    settings: type[Settings] | None = None, **modes: type[Settings]
) -> Callable[[Callable], click.Command]:
    """Return a decorator that makes a function a click command. The first argument of the function is an
    object of the class `settings`, made of the options; None: there is no such argument.

    `modes` are alternatives to `settings`, each selected by the option of that name, such as `--count`.
    """

    def decorate(function: Callable) -> click.Command:
        name = _name(function)
        if settings is None:
            return click.command(name, cls=Command)(function)

        options = _options(settings, modes)

        @functools.wraps(function)
        def run(**arguments: Any) -> object:
            values = _settings_json(arguments.pop("settings"))
            chosen = {key: value for key in options if (value := arguments.pop(key)) not in (None, ())}
            mode = next((name for name in modes if name in chosen or name in values), None)
            model = modes[mode] if mode else settings
            for key, value in chosen.items():
                if key not in _fields(model):
                    raise InputError(_misplaced(key, mode, modes))
                _put(values, _fields(model)[key][0], value)
            try:
                checked = check(model, values, "settings")
            except InputError as error:
                others = " or ".join(f"--{_dashed(name)}" for name in modes)
                if mode or not others or "missing key" not in str(error):
                    raise
                raise InputError(f"{error}, unless you give {others}: see --help") from None
            return function(checked, **arguments)

        text = "All settings as one JSON object; individual options override its values."
        whole = click.option("--settings", metavar="JSON", help=text)
        single = (_option(key, info, text) for key, (info, text) in options.items())
        run = together(whole, *single)(run)
        return click.command(name, cls=Command, epilog=_json_help(settings))(run)

    return decorate


def setting_options(settings: type[Settings]) -> Callable:
    """Return a decorator that adds an option per setting, for values that are not the step's own
    `settings`."""
    return together(*(_option(key, info, _help(info)) for key, (_, info) in _fields(settings).items()))


class ByKind(click.Group):
    """A command with a subcommand for each kind of data. `text` describes the command. `make` returns the
    subcommand for a kind, with the options of that kind, or None if the kind has none."""

    def __init__(self, make: Callable[[AnyKind], click.Command | None], text: str):
        name = _name(make)
        text += f"\n\nThe options depend on the kind of data: `pairflow {name} KIND --help` lists them."
        super().__init__(name=name, help=text, subcommand_metavar="KIND [OPTIONS]")
        self.make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in sorted(KINDS) if self.make(load_kind(name))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.make(load_kind(cmd_name)) if cmd_name in KINDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            known = self.list_commands(ctx)
            text = f"unknown kind of data '{args[0]}'{nearest(args[0], known)}: known are {', '.join(known)}"
            raise click.UsageError(text, ctx) from None


def _name(function: Callable) -> str:
    """Return the name of a step: the last part of the name of the module that defines `function`."""
    if function.__module__ == "__main__":
        return Path(inspect.getfile(inspect.unwrap(function))).stem
    return function.__module__.rpartition(".")[2]


def _options(settings: type[Settings], modes: dict[str, type[Settings]]) -> dict[str, tuple[FieldInfo, str]]:
    """Return a dict from option name to (its field, its help); the help says in which modes the option has
    which meaning. `modes` has further settings classes, each by the option that selects it."""
    helps: dict[str, dict[str, list[str]]] = {}  # option -> text -> its modes; the mode "" is without any
    fields: dict[str, FieldInfo] = {}
    for mode, model in {"": settings, **modes}.items():
        for key, (_, info) in _fields(model).items():
            fields[key] = info
            helps.setdefault(key, {}).setdefault(_help(info), []).append(mode)
    return {key: (info, _merge(key, helps[key], modes)) for key, info in fields.items()}


def _merge(key: str, texts: dict[str, list[str]], modes: Iterable[str]) -> str:
    """Return the help of an option from its texts, each with the modes that have it."""
    if len(texts) == 1 and (key in modes or any(len(where) > 1 for where in texts.values())):
        return next(iter(texts))
    return "  ".join(_mode_prefix(where, modes) + text for text, where in texts.items())


def _mode_prefix(where: list[str], modes: Iterable[str]) -> str:
    """Return the start of a help text that holds only in the modes `where`, such as "With --count: ". A mode
    is named after the option that selects it; "" is without any."""
    if "" not in where:
        return f"With {' or '.join(f'--{_dashed(mode)}' for mode in where)}: "
    others = [f"--{_dashed(mode)}" for mode in modes if mode not in where]
    return f"Without {' and '.join(others)}: " if others else ""


def _misplaced(key: str, mode: str | None, modes: dict[str, type[Settings]]) -> str:
    """Return the error message for an option that does not belong to the selected mode, if any."""
    if mode:
        return f"--{_dashed(key)} does not go with --{_dashed(mode)}: see --help"
    needed = next(name for name, model in modes.items() if key in _fields(model))
    return f"--{_dashed(key)} needs --{_dashed(needed)}: see --help"


def _dashed(name: str) -> str:
    """Return the option name of a setting, without the leading dashes."""
    return "3d" if name == "three_d" else name.replace("_", "-")  # a Python name cannot begin with a digit


def _settings_json(text: str | None) -> Json:
    try:
        values = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InputError(f"--settings: not JSON ({error})") from error
    if not isinstance(values, dict):
        raise InputError("--settings: expected a JSON object")
    return values


def _fields(model: type[BaseModel]) -> dict[str, tuple[tuple[str, ...], FieldInfo]]:
    """Return a dict from option name to (keys that lead to the setting, its field).

    Settings inside `model` have an option for each of their fields. A union of settings classes has only one
    option, which takes JSON.
    """
    fields: dict[str, tuple[tuple[str, ...], FieldInfo]] = {}
    for name, info in model.model_fields.items():
        if inspect.isclass(info.annotation) and issubclass(info.annotation, BaseModel):
            inner = _fields(info.annotation)
            fields |= {key: ((name, *path), field) for key, (path, field) in inner.items()}
        else:
            fields[name] = ((name,), info)
    return fields


def _json_help(model: type[BaseModel]) -> str:
    """Return the end of the help, which lists the keys of each JSON object that an option takes."""
    parts = []
    for option, (_, field) in _fields(model).items():
        for kind in get_args(field.annotation):
            if "name" in getattr(kind, "model_fields", {}):
                kind_name = get_args(kind.model_fields["name"].annotation)[0]
                keys = [f"  {key}: {_help(info)}" for key, info in kind.model_fields.items() if key != "name"]
                parts.append("\n".join(["\b", f'--{option} \'{{"name": "{kind_name}", ...}}\'', *keys]))
    return "\n\n".join(parts)


def _put(values: Json, path: tuple[str, ...], value: object) -> None:
    for key in path[:-1]:
        values = values.setdefault(key, {})
    values[path[-1]] = value


def _option(name: str, info: FieldInfo, text: str) -> Callable:
    flag, kind = "--" + _dashed(name), _click_type(info.annotation)
    if kind is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
    if info.annotation == tuple[str, ...]:
        return click.option(flag, name, multiple=True, help=text)
    return click.option(flag, name, type=kind, default=None, help=text)


def _help(info: FieldInfo) -> str:
    text = info.description or ""
    if info.is_required():
        return text
    return f"{text}  [default: {'none' if info.default in (None, ()) else info.default}]"


def _click_type(annotation: object) -> object:
    """Return the click type for a field: int, float, str, bool, a choice, an integer or a word, or JSON."""
    if annotation in (int, float, str, bool):
        return annotation
    members = [member for member in get_args(annotation) if member is not type(None)]
    if get_origin(annotation) is Literal:
        return click.Choice(members)
    if get_origin(annotation) is Annotated:
        return _click_type(members[0])
    if get_origin(annotation) in (UnionType, Union) and len(members) == 1:
        return _click_type(members[0])
    if [get_origin(member) for member in members] == [Annotated, Literal]:
        return _IntegerOr(*get_args(members[1]))
    return _Json()


class _IntegerOr(click.ParamType):
    """The type of options that take an integer, or one of a few words."""

    def __init__(self, *words: str):
        self.words, self.name = words, "|".join(("integer", *words))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        return value if value in self.words else click.INT.convert(value, param, ctx)


class _Json(click.ParamType):
    name = "json"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if not isinstance(value, str):  # click converts defaults, too
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            self.fail(f"not JSON ({error})", param, ctx)
