"""Turns a Settings class into a command: an option per field, `--settings JSON` for all, one-line errors."""

import functools
import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pairflow.config import Settings, check
from pairflow.errors import InputError, Interrupted
from pairflow.metrics.images import RealImages
from pairflow.runtime import processes, signals

_SCALARS = {int: int, float: float, str: str, bool: bool}

existing = functools.partial(click.option, type=click.Path(path_type=Path), required=True)
out = functools.partial(click.option, type=click.Path(path_type=Path, dir_okay=False), required=True)
quiet = click.option("--quiet", is_flag=True, help="No progress bar.")
device = click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "cpu"]),
    default="auto",
    show_default=True,
    help="auto: CUDA if there is a GPU.",
)
threads = click.option("--threads", type=click.IntRange(1), help="CPU threads.  [default: all]")
micro_batch = click.option(
    "--micro-batch",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Rows in the network at once, where the memory of a GPU is too small; 0: all.",
)

WORKFLOW = Path("workflow_config.yaml")
GIVE_WAY = 2.0  # seconds in which torchrun ends the other processes of a step where one has failed


def configuration(text: str) -> Callable:
    """Decorator: the option that names workflow_config.yaml, with `text` as its help."""
    file = click.Path(path_type=Path)
    return click.option(
        "--config", "configuration", type=file, default=WORKFLOW, show_default=True, help=text
    )


def resumable(function: Callable) -> Callable:
    """Decorator: options of a step that, stopped, goes on where it was."""
    folder = click.Path(path_type=Path, file_okay=False)
    function = click.option(
        "--save-every",
        type=click.FloatRange(0),
        default=300.0,
        show_default=True,
        help="Seconds between two saved states, at least.",
    )(function)
    return click.option(
        "--resume", type=folder, help="Folder for saved states.  [default: beside the output]"
    )(function)


def real_images(function: Callable) -> Callable:
    """Decorator: the options of `RealImages`, handed on as the argument `real`."""

    @functools.wraps(function)
    def run(*arguments: Any, **given: Any) -> Any:
        real = RealImages(**{key: given.pop(key) for key in RealImages._fields})
        return function(*arguments, real=real, **given)

    for option in (
        existing("--classifier", required=False, help="Weights of the classifier, safetensors."),
        existing("--test-reference", help="Statistics of the test images, Parquet."),
        existing("--train-reference", help="Statistics of the training images, Parquet."),
        existing("--validation", help="Test images, Parquet."),
        existing("--tokens", help="Training images, Parquet."),
    ):
        run = option(run)
    return run


class Command(click.Command):
    """Prints a user's mistake as one line on stderr, exit code 2, no traceback. SIGUSR1 does not end it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with signals.unheeded():
                return super().invoke(ctx)
        except InputError as error:
            if processes.rank():
                time.sleep(GIVE_WAY)  # most mistakes are made by all, and one says so
            click.echo(f"pairflow {ctx.command.name}: error: {error}", err=True)
            sys.exit(2)
        except Interrupted as stop:
            if processes.rank() == 0:
                click.echo(
                    f"pairflow {ctx.command.name}: {stop}: the same command goes on from there", err=True
                )
            sys.exit(128 + stop.signal)
        except Exception:
            if processes.world_size() > 1:
                time.sleep(GIVE_WAY)  # it may be that another process is lost
            raise


def step(settings: type[Settings] | None = None, **ways: type[Settings]) -> Callable:
    """Decorator: a click command whose first argument is the checked `settings`.

    `ways`: other settings in their place, each under the name of an option: who gives that, goes that way.
    """

    def decorate(function: Callable) -> click.Command:
        name = function.__module__.rpartition(".")[2]
        if function.__module__ == "__main__":
            name = Path(inspect.getfile(function)).stem
        if settings is None:
            return click.command(name, cls=Command)(function)

        options = _options(settings, ways)

        @functools.wraps(function)
        def run(**given: Any) -> Any:
            values = _settings_json(given.pop("settings"))
            chosen = {key: value for key in options if (value := given.pop(key)) is not None}
            way = next((name for name in ways if name in chosen or name in values), None)
            model = ways.get(way, settings)
            for key, value in chosen.items():
                if key not in _fields(model):
                    raise InputError(_astray(key, way, ways))
                _put(values, _fields(model)[key], value)
            return function(check(model, values, "settings"), **given)

        for key, (info, prefix) in reversed(options.items()):
            run = _option(key, info, prefix)(run)
        run = click.option("--settings", metavar="JSON", help="All settings at once; options override it.")(
            run
        )
        return click.command(name, cls=Command, epilog=_json_help(settings))(run)

    return decorate


def _options(settings: type[Settings], ways: dict[str, type[Settings]]) -> dict[str, tuple[FieldInfo, str]]:
    """Option name -> its field, and the words of its help that say which way it belongs to; all ways' own."""
    without = "".join(f"Without --{name}: " for name in ways)
    options: dict[str, tuple[FieldInfo, str]] = {}
    for prefix, model in [
        (without, settings),
        *((f"With --{name}: ", model) for name, model in ways.items()),
    ]:
        for key, path in _fields(model).items():
            shared = key in options or key in ways
            options[key] = (_field(model, path), "" if shared else prefix)
    return options


def _astray(key: str, way: str | None, ways: dict[str, type[Settings]]) -> str:
    """That an option was given which does not belong to the way that was gone."""
    if way:
        return f"--{_dashed(key)} does not go with --{_dashed(way)}: see --help"
    needed = next(name for name, model in ways.items() if key in _fields(model))
    return f"--{_dashed(key)} needs --{_dashed(needed)}: see --help"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _settings_json(text: str | None) -> dict[str, Any]:
    try:
        values = json.loads(text or "{}")
    except ValueError as error:
        raise InputError(f"--settings: not JSON ({error})") from error
    if not isinstance(values, dict):
        raise InputError("--settings: expected a JSON object")
    return values


def _fields(model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Option name -> path of keys; an inner model gives its own fields, a union of models one JSON option."""
    fields: dict[str, tuple[str, ...]] = {}
    for name, info in model.model_fields.items():
        if inspect.isclass(info.annotation) and issubclass(info.annotation, BaseModel):
            fields |= {key: (name, *path) for key, path in _fields(info.annotation).items()}
        else:
            fields[name] = (name,)
    return fields


def _field(model: type[BaseModel], path: tuple[str, ...]) -> FieldInfo:
    info = model.model_fields[path[0]]
    return info if len(path) == 1 else _field(info.annotation, path[1:])


def _json_help(model: type[BaseModel]) -> str:
    """The end of the help: every key that an option of JSON may hold, for each kind of it."""
    parts = []
    for option, path in _fields(model).items():
        for kind in get_args(_field(model, path).annotation):
            if "name" in getattr(kind, "model_fields", {}):
                kind_name = get_args(kind.model_fields["name"].annotation)[0]
                keys = [f"  {key}: {_help(info)}" for key, info in kind.model_fields.items() if key != "name"]
                parts.append("\n".join(["\b", f'--{option} \'{{"name": "{kind_name}", ...}}\'', *keys]))
    return "\n\n".join(parts)


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        values = values.setdefault(key, {})
    values[path[-1]] = value


def _option(name: str, info: FieldInfo, prefix: str = "") -> Callable:
    flag = "--" + _dashed(name)
    kind, text = _click_type(info.annotation), prefix + _help(info)
    if kind is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
    return click.option(flag, name, type=kind, default=None, help=text)


def _help(info: FieldInfo) -> str:
    text = info.description or ""
    if info.is_required():
        return text
    return f"{text}  [default: {'none' if info.default is None else info.default}]"


def _click_type(annotation: Any) -> Any:
    """int, float, str, bool, a choice, or JSON for anything deeper."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    members = [member for member in get_args(annotation) if member is not type(None)]
    if get_origin(annotation) is Literal:
        return click.Choice(members)
    if get_origin(annotation) in (UnionType, Union) and len(members) == 1:
        return _click_type(members[0])
    return _Json()


class _Json(click.ParamType):
    name = "json"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError as error:
            self.fail(f"not JSON ({error})", param, ctx)
