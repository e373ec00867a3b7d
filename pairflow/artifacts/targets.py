"""What a command may write to: no device, none of its inputs, and no folder that holds anything else."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pairflow.errors import InputError


def require_file(option: str, path: Path) -> None:
    """InputError if `path` is there and is no regular file: a folder, a device or a pipe."""
    if not path.name:
        raise InputError(f"{option}: '{path}' is not the name of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path}: is there and is not a regular file; choose another name")


def require_own_folder(option: str, path: Path, suffixes: Collection[str]) -> None:
    """InputError unless `path` may be replaced: it is absent, or holds only files with these suffixes.

    Snakemake may have put its time stamp there.
    """
    if path.is_symlink() or Path.cwd().is_relative_to(path.resolve()):
        raise InputError(f"{option} {path}: a link, or the working directory; name a folder of its own")
    if not path.exists():
        return
    files = [part for part in sorted(path.iterdir()) if part.name != ".snakemake_timestamp"]
    other = [part for part in files if part.suffix not in suffixes or not part.is_file()]
    if other:
        raise InputError(
            f"{option} {path}: would be replaced, but holds {other[0].name}, which is not one of its files "
            f"({', '.join(suffixes)}); name an empty or new folder"
        )


def require_apart(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """InputError if an output (option -> path) is an input, or is another output or lies in one."""
    read = {path.resolve() for path in inputs}
    places = {option: path.resolve() for option, path in outputs.items()}
    for option, place in places.items():
        if place in read:
            raise InputError(f"{option} {outputs[option]}: is an input of this command; choose another name")
        for other, folder in places.items():
            if other != option and place.is_relative_to(folder):
                raise InputError(f"{option} and {other}: expected different outputs, found {outputs[option]}")
