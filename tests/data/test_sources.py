"""Sources: where a file comes from, that it is whole, and what a user is told when it is not."""

import http.server
import threading

import pytest

from pairflow.data import library, sources
from pairflow.data.sources import RawFile, Source
from pairflow.errors import InputError

pytestmark = pytest.mark.usefixtures("cache")
CONTENT = b"smiles\nCCO\nc1ccccc1\n"
BLOB = "1d2f4b9b2ff4a4c9db0b1a0e5b4d1e7f1c3b5a79"


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT at any name but `missing.csv`, whole or from a byte on."""

    def do_GET(self):
        self.server.asked.append(self.headers.get("Range"))
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        status = (
            404 if self.path == "/missing.csv" else 416 if start >= len(CONTENT) else 206 if start else 200
        )
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
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def remote(server, monkeypatch):
    """Registers the source `remote`, published as the given file name with the given checksum."""

    def register(name="remote.csv", git_blob=None, **more):
        file = RawFile(("remote.csv.gz", "remote.csv"), f"{server.url}/{name}", git_blob)
        monkeypatch.setitem(sources.SOURCES, "remote", Source("a test", file, "smiles", **more))

    return register


def test_git_blob_id_is_gits(tmp_path):
    (tmp_path / "file").write_bytes(b"hello\n")
    assert sources.git_blob_id(tmp_path / "file") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_path_is_itself(tmp_path):
    (tmp_path / "mine.csv").write_bytes(CONTENT)
    assert sources.fetch(tmp_path / "mine.csv") == tmp_path / "mine.csv"


def test_the_embedded_set_needs_no_network():
    path = sources.fetch("small_molecules")
    assert path.name == "small_molecules.csv.gz"
    assert "CCO" in library.rows(path)


def test_data_dir_comes_before_the_publisher(remote, server, tmp_path, monkeypatch):
    remote()
    (tmp_path / "remote.csv").write_bytes(b"smiles\nC\n")
    monkeypatch.setenv(sources.DATA_DIR, str(tmp_path))
    assert sources.fetch("remote") == tmp_path / "remote.csv"
    assert not server.asked


def test_download_once_into_the_cache(remote, server, cache, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    remote(git_blob=sources.git_blob_id(tmp_path / "file"))
    path = sources.fetch("remote", data_dir=tmp_path)
    assert path == cache / "remote.csv"
    assert path.read_bytes() == CONTENT
    assert sources.fetch("remote") == path
    assert server.asked == [None]
    assert list(cache.iterdir()) == [path]


def test_a_wrong_checksum_leaves_nothing(remote, cache):
    remote(git_blob=BLOB)
    with pytest.raises(InputError, match=rf"remote\.csv: wrong checksum, expected git blob {BLOB}"):
        sources.fetch("remote")
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("left", "asked"),
    [(CONTENT[:7], ["bytes=7-"]), (CONTENT + b"more", [f"bytes={len(CONTENT) + 4}-", None])],
    ids=["continued", "useless"],
)
def test_an_interrupted_download_is_taken_up(remote, server, cache, left, asked, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    remote(git_blob=sources.git_blob_id(tmp_path / "file"))
    cache.mkdir()
    (cache / "remote.csv.part").write_bytes(left)
    assert sources.fetch("remote").read_bytes() == CONTENT
    assert server.asked == asked


def test_a_download_without_a_checksum_begins_anew(remote, server, cache):
    """What was left may be of another version."""
    remote()
    cache.mkdir()
    (cache / "remote.csv.part").write_bytes(b"other,column")
    assert sources.fetch("remote").read_bytes() == CONTENT
    assert server.asked == [None]


def test_a_file_that_changed_between_two_attempts_is_refused_and_then_loaded_whole(remote, cache, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    remote(git_blob=sources.git_blob_id(tmp_path / "file"))
    cache.mkdir()
    (cache / "remote.csv.part").write_bytes(b"smilez\nC")
    with pytest.raises(InputError, match="wrong checksum"):
        sources.fetch("remote")
    assert sources.fetch("remote").read_bytes() == CONTENT


def test_what_a_server_broke_off_is_no_file(remote, server, cache, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    remote(git_blob=sources.git_blob_id(tmp_path / "file"))
    server.breaks_off = True
    with pytest.raises(InputError, match=r"cannot download .*/remote\.csv \(ChunkedEncodingError"):
        sources.fetch("remote")
    assert [path.name for path in cache.iterdir()] == ["remote.csv.part"]
    server.breaks_off = False
    assert sources.fetch("remote").read_bytes() == CONTENT


def test_a_server_that_hangs_is_given_up(remote, server, cache, monkeypatch):
    monkeypatch.setattr(sources, "TIMEOUT", 0.2)
    server.hangs.clear()
    remote()
    try:
        with pytest.raises(InputError, match=r"cannot download .* \((ReadTimeout|ConnectionError)"):
            sources.fetch("remote")
    finally:
        server.hangs.set()
    assert not (cache / "remote.csv").exists()


def test_a_failed_download_says_how_to_go_on(remote, cache):
    remote("missing.csv")
    with pytest.raises(
        InputError,
        match=r"cannot download .*/missing\.csv \(HTTPError: 404 .*"
        r"put the file, named remote\.csv\.gz, into a folder and set PAIRFLOW_DATA_DIR to it",
    ):
        sources.fetch("remote")
    assert not list(cache.iterdir())


def test_no_server(remote, server, monkeypatch):
    file = RawFile(("remote.csv",), "http://127.0.0.1:9/remote.csv")
    monkeypatch.setitem(sources.SOURCES, "remote", Source("a test", file, "smiles"))
    with pytest.raises(InputError, match=r"cannot download .* \(ConnectionError"):
        sources.fetch("remote")


def test_unknown_source():
    with pytest.raises(InputError, match="unknown data source 'qm8'; did you mean 'qm9'"):
        sources.fetch("qm8")


def test_missing_file():
    with pytest.raises(InputError, match=r"^folder/molecules\.csv: no such file$"):
        sources.fetch("folder/molecules.csv")


def test_data_dir_that_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(sources.DATA_DIR, str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"PAIRFLOW_DATA_DIR: expected a folder, found none at .*nowhere"):
        sources.fetch("qm9")


def test_check_rows(remote):
    remote(rows=2)
    sources.check_rows("remote", 2)
    sources.check_rows("small_molecules", 7)
    sources.check_rows("folder/molecules.csv", 7)
    with pytest.raises(InputError, match="data source 'remote': expected 2 rows, found 1"):
        sources.check_rows("remote", 1)


def test_validation_rows(tmp_path):
    (tmp_path / "valid_idx_zinc250k.json").write_text("[2, 10]")
    assert sources.validation_rows("zinc250k", data_dir=tmp_path) == [2, 10]


@pytest.mark.parametrize("content", ["[2, ", '{"rows": [2]}', '["a"]'])
def test_broken_validation_rows(tmp_path, content):
    (tmp_path / "valid_idx_zinc250k.json").write_text(content)
    with pytest.raises(InputError, match=r"valid_idx_zinc250k\.json: expected a JSON list of row numbers"):
        sources.validation_rows("zinc250k", data_dir=tmp_path)


def test_no_validation_rows():
    assert sources.validation_rows("qm9") is None
    assert sources.validation_rows("folder/molecules.csv") is None
