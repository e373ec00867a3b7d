"""What a command may write to: no device, and none of its inputs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pairflow.artifacts.atomic import resolved
from pairflow.errors import InputError


def require_file(option: str, path: Path) -> None:
    """InputError if `path` is there and is no regular file: a folder, a device or a pipe."""
    if not path.name:
        raise InputError(f"{option}: '{path}' is not the name of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path}: is there and is not a regular file; choose another name")


def require_folder(option: str, path: Path) -> None:
    """InputError if `path` is there and is no folder."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{option} {path}: is there and is no folder; choose another name")


def require_apart(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """InputError if an output (option -> path) is an input, or is another output or lies in one."""
    read = {resolved(path) for path in inputs}
    places = {option: resolved(path) for option, path in outputs.items()}
    for option, place in places.items():
        if place in read:
            raise InputError(f"{option} {outputs[option]}: is an input of this command; choose another name")
        for other, folder in places.items():
            if other != option and place.is_relative_to(folder):
                raise InputError(f"{option} and {other}: expected different outputs, found {outputs[option]}")
