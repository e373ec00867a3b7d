"""Options that several steps share: files and folders, devices and threads, saved states."""

import functools
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import click

from pairflow import published
from pairflow.errors import InputError
from pairflow.runtime.resume import ResumeOptions
from pairflow.runtime.threads import useful_threads
from pairflow.training.options import FitOptions, ModelPaths


class Output(click.Path):
    """The type of options for outputs: a file that the command writes, or a folder for its files."""

    def __init__(self, folder: bool = False):
        super().__init__(path_type=Path)
        self.folder = folder

    def require_free(self, option: str, path: Path) -> None:
        """Raise InputError, which names the `option`, if the command cannot write to `path`."""
        from pairflow.artifacts import require_file, require_folder, require_writable

        (require_folder if self.folder else require_file)(option, path)
        require_writable(path, self.folder)


class RealRange(click.FloatRange):
    """The type of options for a number in a range. Unlike click's own class it refuses nan, which no
    comparison finds outside."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class _Model(click.Path):
    """The type of options for a model: its folder, or the name of a published model (it becomes a folder)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        folder: Any = super().convert(value, param, ctx)
        try:
            return published.locate(folder)
        except InputError as error:
            self.fail(str(error), param, ctx)


class _AnyModel(click.ParamType):
    """The type of options for a model or an experiment: its folder, a ZIP archive or its address, or a name.
    It becomes a folder; a temporary one is removed when the command ends."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from pairflow.generate import archives

        try:
            folder, temporary = archives.locate(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        if temporary and ctx:
            ctx.call_on_close(functools.partial(shutil.rmtree, temporary, ignore_errors=True))
        return folder


existing = functools.partial(click.option, type=click.Path(path_type=Path), required=True)
model_folder = functools.partial(click.option, type=_Model(path_type=Path))
any_model = functools.partial(click.option, type=_AnyModel())
parent_vocabulary = existing(
    "--parent-vocabulary",
    required=False,
    help="Vocabulary of the model that a training will start from (JSON): its symbols come first.",
)


out = functools.partial(click.option, type=Output(), required=True)


def out_folder(name: str, text: str) -> Callable:
    """Return a decorator that adds the option `name`, for a folder of output files, with `text` as its
    help."""
    text += " Files of an earlier run there are replaced; any others stay."
    return click.option(name, type=Output(folder=True), required=True, help=text)


evaluation = click.option(
    "--evaluation", default="main", show_default=True, help="Name of the evaluation in the metric rows."
)
quiet = click.option("--quiet", is_flag=True, help="Show no progress bar.")
device = click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "cpu"]),
    default="auto",
    show_default=True,
    help="Device to run on; `auto` uses the GPU if there is one.",
)
threads = click.option(
    "--threads",
    type=click.IntRange(1, 4096),
    callback=lambda ctx, option, asked: asked and useful_threads(asked),
    help="Number of CPU threads to use, at most one per CPU.  [default: all]",
)

WORKFLOW = Path("workflow_config.yaml")


def device_type(name: str) -> str:
    """Return `cpu` or `cuda` for `--device`; imports torch only if it is needed."""
    if name == "cpu" or (name == "auto" and shutil.which("nvidia-smi") is None):
        return "cpu"
    from pairflow.runtime.device import choose

    return choose(name, None).type


def configuration(text: str) -> Callable:
    """Return a decorator that adds the option --config, which names workflow_config.yaml, with `text` as its
    help."""
    file = click.Path(path_type=Path)
    return click.option(
        "--config", "configuration", type=file, default=WORKFLOW, show_default=True, help=text
    )


def together(*options: Callable) -> Callable:
    """Return a decorator that adds several options. The help shows them in this order."""

    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def grouped(name: str, group: Any, *options: Callable) -> Callable:
    """Return a decorator that adds options and passes their values as one argument `name`, the NamedTuple
    `group`."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*arguments: object, **values: object) -> object:
            members = group(**{key: values.pop(key) for key in group._fields})
            return function(*arguments, **{name: members}, **values)

        return together(*options)(run)

    return decorate


def bundle(name: str, files: Any) -> Callable:
    """Return a decorator that adds an option for each field, a path, of the NamedTuple class `files`. Their
    values become the argument `name`.

    The annotation of a field is the option's help. Files with a default may be left out.
    """
    hints = get_type_hints(files, include_extras=True)
    options = (
        existing(
            f"--{field.replace('_', '-')}",
            required=field not in files._field_defaults,
            help=hints[field].__metadata__[0],
        )
        for field in files._fields
    )
    return grouped(name, files, *options)


on_device = together(device, threads, quiet)
resume_folder = click.option(
    "--resume",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for saved states, from which an interrupted run resumes.  [default: next to the output]",
)
_resume = (
    resume_folder,
    click.option(
        "--save-every",
        type=RealRange(0),
        default=300.0,
        show_default=True,
        help="Minimum number of seconds between two saved states.",
    ),
)
resumable = grouped("resume", ResumeOptions, *_resume)
model_outputs = grouped(
    "outputs",
    ModelPaths,
    out("--model", help="Output file for the weights, raw and averaged (safetensors)."),
    out("--description", help="Output file for the description of the model (JSON)."),
    out("--log", help="Output file for the training log (Parquet)."),
)
fit_options = grouped(
    "options",
    FitOptions,
    *_resume,
    click.option(
        "--micro-batch",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Maximum number of rows per forward pass, to save GPU memory; 0 means no limit.",
    ),
    device,
    threads,
    quiet,
)
