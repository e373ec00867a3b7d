"""Models that travel: copies of a model's folder, ZIP archives of one, and downloads."""

import hashlib
import shutil
import stat
import tempfile
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from pairflow import published
from pairflow.errors import InputError
from pairflow.files import checked_path, require_plausible, require_regular

FILES = ("*.safetensors", "*.json", "*.parquet", published.CARD)  # what is taken of models of others
_DESCRIPTION = "model.json"
_WEB = ("http://", "https://")


def locate(model: str | Path) -> tuple[Path, Path | None]:
    """Return the folder of a model, and the temporary folder that contains it, or None if there is none.

    `model` is a folder, the name of a model that comes with pairflow, a ZIP archive of a folder, the address
    of such an archive, which is downloaded once, or hf:owner/name on the Hugging Face Hub. Raises InputError
    if there is no such model.
    """
    if isinstance(model, str) and model.startswith("hf:"):
        from pairflow.generate import hub

        return _link(hub.download(model, FILES), model.partition("@")[0].rpartition("/")[2])
    if isinstance(model, str) and model.startswith(_WEB):
        from pairflow.data.download import RawFile

        name = model.partition("?")[0].rpartition("/")[2] or "model.zip"
        cached = f"{hashlib.sha256(model.encode()).hexdigest()[:12]}-{name}"
        return unpack(RawFile(names=(cached,), url=model, cached=cached).fetch())
    if str(model).lower().endswith(".zip") and not checked_path("model", model).is_dir():
        return unpack(Path(model))
    return published.locate(model), None


def find_only(folder: Path) -> Path:
    """Return the folder of the only model of the experiment in `folder`, or else `folder` itself."""
    models = [] if (folder / "model.json").exists() else [*folder.glob("seed*/models/*/model.json")]
    return models[0].parent if len(models) == 1 else folder


def _is_taken(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in FILES)


def _link(files: Path, name: str) -> tuple[Path, Path]:
    """Make a temporary folder that contains a folder `name`, of links to the files in `files`.

    Of these only a model's files are linked. Returns the inner folder and the temporary one.
    """
    place = Path(tempfile.mkdtemp(prefix="pairflow-"))
    folder = place / name
    folder.mkdir()
    for path in files.iterdir():
        if _is_taken(path.name):
            (folder / path.name).symlink_to(path.resolve())
    return folder, place


def unpack(archive: Path) -> tuple[Path, Path]:
    """Unpack a model from a ZIP archive into a temporary folder: its model.json and the FILES beside it.

    Returns the folder of the model and the temporary folder that contains it. Nothing else is unpacked, and
    no path of the archive is used, so that none leads out of the folder. Raises InputError if the archive is
    not readable, or has not exactly one model.json.
    """
    require_regular(archive)
    try:
        with zipfile.ZipFile(archive) as content:
            members = [member for member in content.infolist() if _is_file(member)]
            require_plausible(archive, sum(member.file_size for member in members))
            paths = {member: PurePosixPath(member.filename.replace("\\", "/")) for member in members}
            found = [path for path in paths.values() if path.name == _DESCRIPTION]
            if len(found) != 1:
                raise InputError(f"{archive}: expected one {_DESCRIPTION} in the archive, found {len(found)}")
            place = Path(tempfile.mkdtemp(prefix="pairflow-"))
            folder = place / (found[0].parent.name.lstrip(".") or archive.stem)
            folder.mkdir()
            for member, path in paths.items():
                if path.parent == found[0].parent and _is_taken(path.name):
                    (folder / path.name).write_bytes(content.read(member))
            return folder, place
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # not ZIP, or with a password
        raise InputError(f"{archive}: not a readable ZIP archive: {error}") from None


def _is_file(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    name = PurePosixPath(member.filename).name
    return not member.is_dir() and kind in (0, stat.S_IFREG) and not name.startswith(".")


def copy(model: Path, target: Path) -> None:
    """Copy a model's files, without provenance, into a new folder, or a new archive named .zip.

    Raises InputError if `target` is there and is not an empty folder.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError(f"folder: expected a new or an empty folder, found files in {target}")
    files = [path for path in model.iterdir() if path.is_file() and not path.name.startswith(".")]
    files = [path for path in files if not path.name.endswith(".provenance.json")]
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix.lower() == ".zip":
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(files):
                archive.write(path, f"{target.stem}/{path.name}")
        return
    target.mkdir(exist_ok=True)
    for path in files:
        shutil.copyfile(path, target / path.name)
