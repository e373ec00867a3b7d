"""Published files: where copies are looked for, how files are downloaded, and how they are checked.

A file comes from the folder that `PAIRFLOW_DATA_DIR` names if it is there. Otherwise it is downloaded once
from its publisher into the user's cache. Copies in the folder may be compressed differently, so that
checksums apply only to downloads.
"""

import functools
import hashlib
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import requests

from pairflow.artifacts import digest
from pairflow.data.status import Finding, described
from pairflow.errors import InputError
from pairflow.files import require_regular
from pairflow.runtime.progress import bar

DATA_DIR = "PAIRFLOW_DATA_DIR"
TIMEOUT = 30  # seconds without a byte after which a download is given up
ANSWER_SECONDS = 4.0  # time for a server to say whether it has a file


@dataclass(frozen=True)
class RawFile:
    """A published file, and where to find it.

    Attributes:
        names: the names that a copy in the folder PAIRFLOW_DATA_DIR may have.
        url: the address for a download, or None.
        git_blob, sha256: the checksum of the published file, as a git blob id or a SHA-256, if it is known.
        embedded: the path of the file if the package contains it.
        cached: the name of a download in the cache, if it differs from the name in `url`.
    """

    names: tuple[str, ...]
    url: str | None = None
    git_blob: str | None = None
    sha256: str | None = None
    embedded: Path | None = None
    cached: str = ""

    @property
    def cached_copy(self) -> Path:
        """The path of a download in the user's cache."""
        return cache() / (self.cached or str(self.url).rpartition("/")[2])

    @property
    def is_as_published(self) -> bool:
        """Whether the copy in the cache has the published checksum, if one is known."""
        if self.sha256 is not None:
            return digest(self.cached_copy) == self.sha256
        return self.git_blob is None or git_blob_id(self.cached_copy) == self.git_blob

    def fetch(self) -> Path:
        """Return the path of the file: a copy in PAIRFLOW_DATA_DIR, the file in the package, or a download
        into the cache, whose checksum is compared. Raises InputError if it cannot be downloaded."""
        if path := local_copy(self.names):
            if path.is_file():
                require_regular(path)
            return path
        return self.embedded or self._download()

    def _download(self) -> Path:
        # pooch would print the hash of a file that has no known one, and advise to add it to the code.
        pooch.get_logger().setLevel("WARNING")
        path = self.cached_copy
        # Without a checksum nobody would notice that both parts of a file come from different versions.
        load = functools.partial(_load, resumable=bool(self.git_blob or self.sha256))
        try:
            pooch.retrieve(self.url, known_hash=None, fname=path.name, path=path.parent, downloader=load)
        except (OSError, requests.RequestException) as error:
            name = next((name for name in self.names if str(self.url).endswith(f"/{name}")), self.names[0])
            raise InputError(
                f"cannot download {self.url} ({type(error).__name__}: {error}); "
                f"try again, or put the file, named {name}, into a folder and set {DATA_DIR} to it"
            ) from None
        if not self.is_as_published:
            path.unlink()
            expected = f"SHA-256 {self.sha256}" if self.sha256 else f"git blob {self.git_blob}"
            raise InputError(f"{self.url}: wrong checksum, expected {expected}")
        return path


def local_copy(names: Iterable[str]) -> Path | None:
    """Return the path of the first of `names` that the folder PAIRFLOW_DATA_DIR has, or None.

    A name without a suffix stands for a folder. Raises InputError if PAIRFLOW_DATA_DIR is no folder.
    """
    folder = os.environ.get(DATA_DIR)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise InputError(f"{DATA_DIR}: expected a folder, found none at {folder}")
    paths = (Path(folder, name) for name in names)
    return next((path for path in paths if (path.is_file() if path.suffix else path.is_dir())), None)


def cache() -> Path:
    """Return the user's cache of downloads."""
    return Path(pooch.os_cache("pairflow"))


def git_blob_id(path: Path) -> str:
    """Return the git blob id of a file: the SHA-1 of `blob <size>`, a zero byte and the content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _load(url: str, output_file: str, _: object, *, resumable: bool) -> None:
    """Download the file at `url` to the path `output_file`, as pooch calls it. If `resumable`, continue an
    interrupted download, from `<name>.part`."""
    part = Path(output_file).with_name(url.rpartition("/")[2] + ".part")
    have = part.stat().st_size if resumable and part.exists() else 0
    # In a compressed answer, byte positions would differ from positions in the file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()  # it is as long as the file, or longer: perhaps of another version
            return _load(url, output_file, _, resumable=resumable)
        response.raise_for_status()
        if response.status_code != requests.codes.partial_content:
            have = 0  # a server may ignore the range and send the whole file
        left = int(response.headers.get("Content-Length", 0))
        count = bar(desc=part.stem, initial=have, total=have + left or None, unit="B", unit_scale=True)
        with count, part.open("ab" if have else "wb") as file:
            for chunk in response.iter_content(2**16):
                file.write(chunk)
                count.update(len(chunk))
    part.replace(output_file)


def published_status(files: Sequence[RawFile], offline: bool) -> Finding:
    """Return for `pairflow doctor` whether all files are here, as a copy or in the cache, or can be
    downloaded. With `offline`, no server is asked."""
    texts, missing = [], []
    for file in files:
        local = local_copy(file.names)
        path = local or file.embedded or file.cached_copy
        if not path.exists():
            missing.append(file)
        elif path == file.cached_copy and not file.is_as_published:
            text = f"{path}: not the published file, by its checksum"
            return Finding.attention(text, f"rm {shlex.quote(str(path))}")
        elif path != file.embedded:
            texts.append(str(path))
    if not missing:
        return Finding.ok(", ".join(texts) or "part of pairflow")
    copies = " and ".join(" or ".join(file.names) for file in missing)
    remedy = f"export {DATA_DIR}=<a folder with {copies}>"
    urls = [file.url for file in missing if file.url]
    if len(urls) < len(missing):
        return Finding.optional(f"not here, and pairflow cannot download it: {copies}", remedy)
    if offline:
        return Finding.optional("pairflow downloads it; not checked, because of --offline")
    try:
        for url in urls:
            requests.head(url, timeout=ANSWER_SECONDS, allow_redirects=True).raise_for_status()
    except OSError as error:  # requests' errors included
        return Finding.attention(f"cannot be downloaded: {described(error)}", remedy)
    return Finding.ok(f"pairflow downloads it from {' and '.join(urlsplit(url).netloc for url in urls)}")
