"""Models that travel: `LoadedModel.save`, and `pairflow.load` of archives and addresses."""

import functools
import http.server
import threading
import zipfile

import numpy as np
import pytest

import pairflow
from pairflow.data import download
from pairflow.errors import InputError


def test_a_saved_folder_and_a_saved_archive_are_the_model(digits, tmp_path):
    for place in (tmp_path / "new" / "mine", tmp_path / "mine.zip"):
        digits.save(place)
        other = pairflow.load(place, device="cpu")
        assert (other.nfe, other.sampler, other.model.folder.name) == (digits.nfe, digits.sampler, "mine")
        np.testing.assert_array_equal(other.sample(3), digits.sample(3))
        with pytest.raises(InputError, match="expected a new or an empty folder"):
            digits.save(place)
    folder = other.model.folder
    del other
    assert not folder.exists()


def test_an_address_is_downloaded_once(digits, tmp_path, monkeypatch):
    digits.save(tmp_path / "mine.zip")
    monkeypatch.setattr(download, "cache", lambda: tmp_path / "cache")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/mine.zip"
    rows = pairflow.load(address, device="cpu").sample(3)
    server.shutdown()
    server.server_close()
    np.testing.assert_array_equal(rows, digits.sample(3))
    np.testing.assert_array_equal(pairflow.load(address, device="cpu").sample(3), rows)
    with pytest.raises(InputError, match="cannot download"):
        pairflow.load(address.replace("mine", "other"), device="cpu")


def archive(path, members: dict[str, bytes] | None, attributes: int = 0) -> None:
    if members is None:
        path.write_bytes(b"no archive")
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in members.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = attributes
            content.writestr(member, data, zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize(
    ("members", "attributes", "said"),
    [
        (None, 0, r"x\.zip: not a readable ZIP archive"),
        ({"a.txt": b"a"}, 0, "expected one model.json in the archive, found 0"),
        ({"a/model.json": b"{}"}, 0o120777 << 16, "expected one model.json in the archive, found 0"),
        ({"a/model.json": b"{}", "a/x": bytes(2**25)}, 0, "unpacks to at most 100 times"),
    ],
)
def test_other_archives_are_refused(members, attributes, said, tmp_path):
    archive(tmp_path / "x.zip", members, attributes)
    with pytest.raises(InputError, match=said):
        pairflow.load(tmp_path / "x.zip", device="cpu")


def test_no_file_is_written_outside_of_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    names = ["../../escaped.txt", "/escaped.txt", "..\\escaped.txt", "a/../../escaped.txt", "model.json"]
    archive(tmp_path / "x.zip", dict.fromkeys(names, b"{}"))
    with pytest.raises(InputError, match="not a model description"):
        pairflow.load(tmp_path / "x.zip", device="cpu")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["temporary", "x.zip"]
