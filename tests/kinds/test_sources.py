"""Sources: where a file comes from, that it is whole, and what a user is told when it is not."""

import http.server
import threading

import pytest

from pairflow.data import download
from pairflow.data.download import RawFile, git_blob_id
from pairflow.data.source import DatasetSize
from pairflow.errors import InputError
from pairflow.kinds import source_of
from pairflow.kinds.images.settings import Images
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.data.data_sets import MoleculeTable
from pairflow.kinds.molecules.settings import Molecules

pytestmark = pytest.mark.usefixtures("cache")
CONTENT = b"smiles\nCCO\nc1ccccc1\n"
BLOB = "1d2f4b9b2ff4a4c9db0b1a0e5b4d1e7f1c3b5a79"


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT at any name but `missing.csv`, whole or from a byte on."""

    def do_GET(self):
        self.server.asked.append(self.headers.get("Range"))
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        status = 416 if start >= len(CONTENT) else 206 if start else 200
        status = 404 if self.path == "/missing.csv" else status
        body = CONTENT[start:] if status < 300 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.server.hangs.wait()
        self.wfile.write(body[: len(body) // 2] if self.server.breaks_off else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        server.breaks_off, server.hangs = False, threading.Event()
        server.hangs.set()
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield server
        server.shutdown()


@pytest.fixture
def remote(server):
    """A table that is published as the given file name with the given checksum."""

    def table(name="remote.csv", git_blob=None, size=None):
        file = RawFile(("remote.csv.gz", "remote.csv"), f"{server.url}/{name}", git_blob)
        return MoleculeTable("remote", file, size)

    return table


@pytest.fixture
def checked(remote, tmp_path):
    """The table of `CONTENT` with its checksum."""
    (tmp_path / "file").write_bytes(b"hello\n")
    assert git_blob_id(tmp_path / "file") == "ce013625030ba8dba906f756967f9e9ca394464a"  # by git
    (tmp_path / "file").write_bytes(CONTENT)
    return remote(git_blob=git_blob_id(tmp_path / "file"))


def test_known_sizes_follow_the_settings():
    digits = Images(source="digits", training_rows=100, flips=True)
    assert source_of(digits).measure(digits) == DatasetSize(200, 180, 2, 64, (1, 8, 8))
    qm9 = Molecules(source="qm9", length=32)
    assert source_of(qm9).measure(qm9) == DatasetSize(127_190, 6_695, 40, 32)


def test_own_files_are_measured(tmp_path):
    (tmp_path / "a.smi").write_text("C\nCC\nC\nCCC\nCCCCCCCCC\n")
    own = Molecules(source="a.smi", length=8, validation_fraction=0.25, max_too_long_share=0.5)
    assert source_of(own, tmp_path).measure(own) == DatasetSize(3, 1, 11, 8)
    (tmp_path / "a.smi").write_text("CCCCCCC\n")
    with pytest.raises(InputError, match=r"^length: 1 of 1 molecules \(100.00%\) do not fit N = 8"):
        source_of(own, tmp_path).measure(own)


def test_data_dir_comes_before_the_publisher(remote, server, copies, monkeypatch):
    (copies / "remote.csv").write_bytes(b"smiles\nC\n")
    assert remote().fetch() == copies / "remote.csv"
    assert not server.asked
    monkeypatch.setenv(download.DATA_DIR, str(copies / "nowhere"))
    with pytest.raises(InputError, match=r"PAIRFLOW_DATA_DIR: expected a folder, found none at .*nowhere"):
        remote().fetch()


def test_download_once_into_the_cache(checked, server, cache, copies):
    path = checked.fetch()
    assert path == cache / "remote.csv"
    assert path.read_bytes() == CONTENT
    assert checked.fetch() == path
    assert server.asked == [None]
    assert list(cache.iterdir()) == [path]


@pytest.mark.promise("download")
def test_a_wrong_checksum_leaves_nothing(remote, cache):
    with pytest.raises(InputError, match=rf"remote\.csv: wrong checksum, expected git blob {BLOB}"):
        remote(git_blob=BLOB).fetch()
    assert not list(cache.iterdir())


@pytest.mark.promise("download")
@pytest.mark.parametrize(
    ("left", "asked"),
    [(CONTENT[:7], ["bytes=7-"]), (CONTENT + b"more", [f"bytes={len(CONTENT) + 4}-", None])],
    ids=["continued", "useless"],
)
def test_an_interrupted_download_resumes(checked, server, cache, left, asked):
    cache.mkdir()
    (cache / "remote.csv.part").write_bytes(left)
    assert checked.fetch().read_bytes() == CONTENT
    assert server.asked == asked


@pytest.mark.promise("download")
def test_a_download_without_a_checksum_starts_again(remote, server, cache):
    """The part that was left may be of another version."""
    cache.mkdir()
    (cache / "remote.csv.part").write_bytes(b"other,column")
    assert remote().fetch().read_bytes() == CONTENT
    assert server.asked == [None]


@pytest.mark.promise("download")
def test_a_file_that_changed_between_two_attempts_is_refused_and_then_loaded_whole(checked, cache):
    cache.mkdir()
    (cache / "remote.csv.part").write_bytes(b"smilez\nC")
    with pytest.raises(InputError, match="wrong checksum"):
        checked.fetch()
    assert checked.fetch().read_bytes() == CONTENT


@pytest.mark.promise("download")
def test_a_truncated_download_is_not_a_file(checked, server, cache):
    server.breaks_off = True
    with pytest.raises(InputError, match=r"cannot download .*/remote\.csv \(ChunkedEncodingError"):
        checked.fetch()
    assert [path.name for path in cache.iterdir()] == ["remote.csv.part"]
    server.breaks_off = False
    assert checked.fetch().read_bytes() == CONTENT


@pytest.mark.promise("download")
def test_a_server_that_hangs_is_given_up(remote, server, cache, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    server.hangs.clear()
    source = remote()
    try:
        with pytest.raises(InputError, match=r"cannot download .* \((ReadTimeout|ConnectionError)"):
            source.fetch()
    finally:
        server.hangs.set()
    assert not (cache / "remote.csv").exists()


@pytest.mark.promise("download")
def test_a_failed_download_says_how_to_go_on(remote, cache):
    advice = r"put the file, named remote\.csv\.gz, into a folder and set PAIRFLOW_DATA_DIR to it"
    source = remote("missing.csv")
    with pytest.raises(InputError, match=rf"cannot download .*/missing\.csv \(HTTPError: 404 .*{advice}"):
        source.fetch()
    assert not list(cache.iterdir())
    names = ("remote.csv.gz", "remote.csv")
    source = MoleculeTable("remote", RawFile(names, "http://127.0.0.1:9/remote.csv"))
    with pytest.raises(InputError, match=r"cannot download .* \(ConnectionError.* named remote\.csv, into"):
        source.fetch()


def test_a_published_table_has_the_published_rows(remote, copies):
    (copies / "remote.csv").write_text("smiles\nC\nCC\nCCC\n")
    settings = Molecules(source="qm9", length=8)
    assert len(remote(size=DatasetSize(2, 1, 11)).read(settings).smiles) == 3
    with pytest.raises(InputError, match="data source 'remote': expected 2 rows, found 3"):
        remote(size=DatasetSize(1, 1, 11)).read(settings)


def test_validation_rows(copies):
    published = copies / "valid_idx_zinc250k.json"
    published.write_text("[2, 10]")
    assert MOLECULES["zinc250k"].validation_rows() == [2, 10]
    assert MOLECULES["qm9"].validation_rows() is None
    for content in ("[2, ", '{"rows": [2]}', '["a"]'):
        published.write_text(content)
        with pytest.raises(InputError, match=rf"{published.name}: expected a JSON list of row numbers"):
            MOLECULES["zinc250k"].validation_rows()
