"""Which folder a command may replace: one that holds only files such as it writes there."""

from collections.abc import Collection, Iterable
from pathlib import Path

from pairflow.errors import InputError


def require_own_folder(option: str, path: Path, suffixes: Collection[str], outputs: Iterable[Path]) -> None:
    """InputError unless `path` may be replaced: it is absent, or holds only files with these suffixes.

    None of the command's other `outputs` may lie in it, because they would be replaced with it.
    """
    if path.is_symlink() or Path.cwd().is_relative_to(path.resolve()):
        raise InputError(f"{option} {path}: a link, or the working directory; name a folder of its own")
    for out in outputs:
        if out.resolve().is_relative_to(path.resolve()):
            raise InputError(f"{option} {path}: would be replaced with {out} in it; name a folder of its own")
    if not path.exists():
        return
    other = [part for part in sorted(path.iterdir()) if part.suffix not in suffixes or not part.is_file()]
    if other:
        raise InputError(
            f"{option} {path}: would be replaced, but holds {other[0].name}, which is not one of its files "
            f"({', '.join(suffixes)}); name an empty or new folder"
        )
