"""Raw data: who publishes it, how it is fetched, and how a copy is checked.

A file comes from the folder that `PAIRFLOW_DATA_DIR` names if it is there, else from its publisher, once,
into the user's cache. Copies in the folder may be packed anew, so checksums apply to downloads only.
"""

import difflib
import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pooch
import requests
from tqdm import tqdm

from pairflow.errors import InputError

DATA_DIR = "PAIRFLOW_DATA_DIR"
TIMEOUT = 30  # seconds without a byte after which a server is given up


@dataclass(frozen=True)
class RawFile:
    """A published file: the names a local copy may have, its address, its git blob id where one is known.

    A file without an address is part of the package.
    """

    names: tuple[str, ...]
    url: str | None = None
    git_blob: str | None = None


@dataclass(frozen=True)
class Source:
    """A raw data set: its table, the column to read, its number of rows, and its published split if any."""

    description: str
    table: RawFile
    column: str
    rows: int | None = None
    validation: RawFile | None = None


SOURCES = {
    "small_molecules": Source(
        description="all small molecules of C, N, O and F, made by pairflow.data.enumerate_molecules",
        table=RawFile(("small_molecules.csv.gz",)),
        column="smiles",
    ),
    "qm9": Source(
        description="QM9, 133,885 molecules of up to 9 heavy atoms, as DeepChem publishes it",
        table=RawFile(
            ("qm9.csv.gz", "qm9.csv"),
            "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/molnet_publish/qm9.csv",
        ),
        column="smiles",
        rows=133_885,
    ),
    "zinc250k": Source(
        description="ZINC-250k, 249,455 drug-like molecules, with the validation split that GDSS publishes",
        table=RawFile(
            ("zinc250k.csv.gz", "zinc250k.csv", "250k_rndm_zinc_drugs_clean_3.csv"),
            "https://raw.githubusercontent.com/aspuru-guzik-group/chemical_vae/HEAD/"
            "models/zinc_properties/250k_rndm_zinc_drugs_clean_3.csv",
            "d31726bf929d35cb52fa109db90411c90a000dfe",
        ),
        column="smiles",
        rows=249_455,
        validation=RawFile(
            ("valid_idx_zinc250k.json",),
            "https://raw.githubusercontent.com/harryjo97/GDSS/HEAD/data/valid_idx_zinc250k.json",
            "b4b45d15971cb9115efeb8044195bf3440eb02f8",
        ),
    ),
}


def fetch(name_or_path: str | Path, data_dir: str | Path | None = None) -> Path:
    """The table of a source, by its name in `SOURCES`, or the file at a path: a local file either way.

    `data_dir` overrides the environment variable `PAIRFLOW_DATA_DIR`. A file that is not there is downloaded
    into the user's cache, with a progress bar; an interrupted download is taken up where it stopped.

    Raises InputError for an unknown name, a missing file or folder, a failed download and a wrong checksum.
    """
    if (path := Path(name_or_path)).is_file():
        return path
    return _locate(_source(str(name_or_path)).table, data_dir)


def validation_rows(name_or_path: str | Path, data_dir: str | Path | None = None) -> list[int] | None:
    """Row numbers, from 0, of a source's published validation split; None where there is none.

    Raises InputError as `fetch` does, and for a list that is not one of row numbers.
    """
    source = SOURCES.get(str(name_or_path))
    if source is None or source.validation is None:
        return None
    path = _locate(source.validation, data_dir)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: expected a JSON list of row numbers: {error}") from None
    if not isinstance(rows, list) or not all(type(row) is int for row in rows):
        raise InputError(f"{path}: expected a JSON list of row numbers")
    return rows


def check_rows(name_or_path: str | Path, found: int) -> None:
    """InputError if a source's table has not the number of rows that its publisher states."""
    source = SOURCES.get(str(name_or_path))
    if source is not None and source.rows not in (None, found):
        raise InputError(f"data source {name_or_path!r}: expected {source.rows} rows, found {found}")


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """The folder of local copies: `data_dir`, else what `PAIRFLOW_DATA_DIR` names, else None."""
    data_dir = data_dir or os.environ.get(DATA_DIR)
    if not data_dir:
        return None
    if not Path(data_dir).is_dir():
        raise InputError(f"{DATA_DIR}: expected a folder, found none at {data_dir}")
    return Path(data_dir)


def cache() -> Path:
    """The user's cache of downloads."""
    return Path(pooch.os_cache("pairflow"))


def _source(name):
    if name in SOURCES:
        return SOURCES[name]
    if "/" in name or "." in name:
        raise InputError(f"{name}: no such file")
    nearest = difflib.get_close_matches(name, SOURCES, n=1, cutoff=0.0)[0]
    raise InputError(f"unknown data source {name!r}; did you mean {nearest!r}? Known: {', '.join(SOURCES)}")


def _locate(file, data_dir):
    if file.url is None:
        return Path(__file__).parent / file.names[0]
    return local_copy(file, data_dir) or _download(file)


def local_copy(file: RawFile, data_dir: str | Path | None = None) -> Path | None:
    """The file in the folder of local copies; None where it is not there."""
    folder = data_folder(data_dir)
    names = file.names if folder else ()
    return next((folder / name for name in names if (folder / name).is_file()), None)


def cached_copy(file: RawFile) -> Path:
    """Where a download of the file is, or would be."""
    return cache() / file.url.rpartition("/")[2]


def _download(file):
    """The file in the user's cache, downloaded first if it is not there, and checked every time."""
    # pooch would print the hash of a file that has none published, with the advice to write it into the code.
    pooch.get_logger().setLevel("WARNING")
    path = cached_copy(file)
    # What is left of a file without a checksum may be of another version than the rest that comes now.
    load = functools.partial(_load, resumable=file.git_blob is not None)
    try:
        pooch.retrieve(file.url, known_hash=None, fname=path.name, path=path.parent, downloader=load)
    except (OSError, requests.RequestException) as error:
        raise InputError(
            f"cannot download {file.url} ({type(error).__name__}: {error}); "
            f"or put the file, named {file.names[0]}, into a folder and set {DATA_DIR} to it"
        ) from None
    if file.git_blob is not None and git_blob_id(path) != file.git_blob:
        path.unlink()
        raise InputError(f"{file.url}: wrong checksum, expected git blob {file.git_blob}")
    return path


def git_blob_id(path: Path) -> str:
    """Git's name for a file's content: the SHA-1 of `blob <size>`, a zero byte and the content, as hex."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _load(url, output_file, _, *, resumable):
    """A downloader for pooch; `resumable` continues what an interrupted one has left in `<name>.part`."""
    part = Path(output_file).with_name(url.rpartition("/")[2] + ".part")
    have = part.stat().st_size if resumable and part.exists() else 0
    # Unpacked on the way: byte positions of a packed answer would not be those of the file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()
            return _load(url, output_file, _, resumable=resumable)
        response.raise_for_status()
        if response.status_code != requests.codes.partial_content:
            have = 0
        left = int(response.headers.get("Content-Length", 0))
        bar = tqdm(desc=part.stem, initial=have, total=have + left or None, unit="B", unit_scale=True)
        with bar, part.open("ab" if have else "wb") as file:
            for chunk in response.iter_content(2**16):
                file.write(chunk)
                bar.update(len(chunk))
    part.replace(output_file)
