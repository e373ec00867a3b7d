"""Each data set that the experiments use: is it here, is it whole, or can it be fetched."""

import csv
import gzip
import shlex
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairflow.checkup.line import Line, State, described
from pairflow.checkup.processes import TooSlow, within
from pairflow.config import Configuration

NETWORK_SECONDS = 4.0


@dataclass(frozen=True)
class Look:
    """How it is looked: the workflow's folder, whether the network is left alone, and torchvision's facts."""

    folder: Path
    offline: bool
    torchvision: dict[str, Any]


def used(configuration: Configuration) -> dict[tuple[str, str | None], list[str]]:
    """(source, folder of images) -> the experiments on it."""
    found: dict[tuple[str, str | None], list[str]] = {}
    for name, experiment in configuration.experiments.items():
        data = experiment.data
        found.setdefault((data.source, getattr(data, "folder", None)), []).append(name)
    return found


def line(source: str, images: str | None, look: Look) -> Line:
    """The line of one data set; `images` is the folder of one's own."""
    from pairflow.data.sources import SOURCES

    name = f"data: {source}"
    if images is not None:
        return _folder(name, look.folder / images)
    if source in SOURCES:
        return _table(name, source, look)
    if source in ("mnist_binary", "cifar10"):
        return _published_images(name, source, look)
    if source == "digits":
        from pairflow.data.images import read_digits

        return Line(name, State.OK, f"part of pairflow, {len(read_digits().images):,} images")
    return _file(f"data: {Path(source).name}", look.folder / source)


def _folder(name: str, path: Path) -> Line:
    if path.is_dir():
        return Line(name, State.OK, str(path))
    return Line(name, State.ATTENTION, f"{path}: no such folder", f"ls {shlex.quote(str(path.parent))}")


def _file(name: str, path: Path) -> Line:
    try:
        with path.open("rb") as file:
            whole = bool(file.read(1))
    except OSError as error:
        return Line(name, State.ATTENTION, f"{path}: {error.strerror}", f"ls {shlex.quote(str(path.parent))}")
    if not whole:
        return Line(name, State.ATTENTION, f"{path}: empty", f"ls -l {shlex.quote(str(path))}")
    return Line(name, State.OK, str(path))


def _table(name: str, source: str, look: Look) -> Line:
    """A published table of molecules, with its split where one is published."""
    from pairflow.data.sources import SOURCES, cached_copy, git_blob_id, local_copy

    facts = SOURCES[source]
    if facts.table.url is None:
        return Line(name, State.OK, "part of pairflow")
    found, to_fetch = [], []
    for file in filter(None, (facts.table, facts.validation)):
        local, cached = local_copy(file), cached_copy(file)
        path = local or (cached if cached.is_file() else None)
        if path is None:
            to_fetch.append(file)
            continue
        said = str(path)
        if local is None and file.git_blob:
            if git_blob_id(path) != file.git_blob:
                return _broken(name, path, "not the published file, by its checksum")
            said += " (checksum as published)"
        if file is facts.table and (wrong := _wrong_table(path, facts.column, facts.rows)):
            return _broken(name, path, wrong)
        found.append(said)
    if not to_fetch:
        return Line(name, State.OK, ", ".join(found))
    here = f"{', '.join(found)} is here; " if found else ""
    hints = [file.names[0] for file in to_fetch]
    return _fetched(name, [[file.url] for file in to_fetch], here, " and ".join(hints), look)


def _wrong_table(path: Path, column: str, rows: int | None) -> str | None:
    """What is wrong with a table; None if it has the column and as many rows as are published."""
    opened: Callable = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            records = csv.reader(file)
            header = next(records, [])
            count = sum(1 for record in records if record)
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
        return f"not readable: {described(error)}"
    if column not in header:
        return f"no column '{column}'"
    return None if rows in (None, count) else f"{count:,} rows, expected {rows:,}"


def _published_images(name: str, source: str, look: Look) -> Line:
    from pairflow.data import images
    from pairflow.data.sources import data_folder
    from pairflow.errors import InputError

    folder = data_folder()
    if local := images.local_copy(source, folder):
        if local.name == "cifar-10-batches-py":  # torchvision would read it
            return Line(name, State.OK, str(local))
        read = {"mnist_binary": images.read_mnist, "cifar10": images.read_cifar10}[source]
        try:
            raw = read(folder)
        except InputError as error:
            return _broken(name, local, str(error))
        return Line(name, State.OK, f"{local}{f': {raw.partial}' if raw.partial else ''}")
    facts = look.torchvision.get("data", {}).get(source)
    if facts is None:
        found = "torchvision would fetch it, and is not there or broken"
        return Line(name, State.ATTENTION, found, 'pip install "pairflow[workflow]"')
    if facts["broken"]:
        return _broken(name, Path(facts["folder"]), facts["broken"])
    if facts["broken"] == "":
        return Line(name, State.OK, facts["folder"])
    hint = {"mnist_binary": "mnist/*.gz", "cifar10": "cifar-10-batches-py"}[source]
    return _fetched(name, [facts["addresses"]], "", hint, look)


def _broken(name: str, path: Path, why: str) -> Line:
    """A copy that the workflow would refuse; without it, it is fetched again."""
    text = why if str(path) in why else f"{path}: {why}"
    return Line(name, State.ATTENTION, text, f"rm -r {shlex.quote(str(path))}")


def _fetched(name: str, files: list[list[str]], here: str, hint: str, look: Look) -> Line:
    """The line of a data set of which `files`, each with its addresses, would have to be downloaded."""
    if look.offline:
        return Line(name, State.OPTIONAL, f"{here}to be downloaded; the network was not asked")
    remedy = f"export PAIRFLOW_DATA_DIR=<a folder with {hint}>"
    sizes, hosts = 0, []
    for addresses in files:
        try:
            size, host = _first_reachable(addresses)
        except (OSError, TooSlow) as error:  # requests' errors are OSErrors
            return Line(name, State.ATTENTION, f"{here}cannot be downloaded: {described(error)}", remedy)
        sizes += size
        hosts.append(host)
    much = f"{sizes / 2**20:,.1f} MB " if sizes else ""
    return Line(name, State.OK, f"{here}{much}to be downloaded from {' and '.join(dict.fromkeys(hosts))}")


def _first_reachable(addresses: Iterable[str]) -> tuple[int, str]:
    """Size in bytes (0: not told) and host of the first address that answers; raises the first's error."""
    first: Exception | None = None
    for address in addresses:
        try:
            return within(NETWORK_SECONDS, lambda address=address: _ask(address))
        except (OSError, TooSlow) as error:
            first = first or error
    assert first is not None
    raise first


def _ask(address: str) -> tuple[int, str]:
    from urllib.parse import urlsplit

    import requests

    # Unpacked on the way, as in a download: the size is then that of the file.
    asked = {"Accept-Encoding": "identity"}
    response = requests.head(address, headers=asked, timeout=NETWORK_SECONDS, allow_redirects=True)
    response.raise_for_status()
    return int(response.headers.get("Content-Length", 0)), urlsplit(address).netloc
