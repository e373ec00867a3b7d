"""Models on a hub: the real client of huggingface_hub against a server here that answers as the hub does."""

import base64
import json
import re
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import pairflow
from pairflow import published
from pairflow.cli import main
from pairflow.data.classes import Classes, Properties
from pairflow.errors import InputError
from pairflow.generate.hub import card
from pairflow.training.model import Model

huggingface_hub = pytest.importorskip("huggingface_hub")
SHA = "1" * 40
TOKEN = "hf_right"


class Hub(BaseHTTPRequestHandler):
    """Answers the requests of `snapshot_download`, `create_repo` and `upload_folder`."""

    def answer(self, content: dict | list | bytes, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        name = re.match(r"(?:/api/models)?/([^/]+/[^/]+)", path)[1]
        if name not in self.server.repositories:
            return self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        files = self.server.repositories[name]
        if found := re.search("/resolve/[^/]+/(.+)", path):
            etag = f'"{hash(files[found[1]]) % 2**64:040x}"'
            return self.answer(files[found[1]], ETag=etag, X_Repo_Commit=SHA)
        if "/tree/" in path:
            facts = {"type": "file", "oid": SHA}
            return self.answer([facts | {"path": key, "size": len(file)} for key, file in files.items()])
        if re.search(f"/revision/(?!main|{SHA})", path):
            return self.answer({"error": "Invalid rev id"}, 404, X_Error_Code="RevisionNotFound")
        return self.answer({"id": name, "sha": SHA, "siblings": [{"rfilename": key} for key in files]})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        if path == "/api/validate-yaml":
            self.server.card = yaml.safe_load(json.loads(body)["content"].split("---")[1])
            return self.answer({"errors": [], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer({"error": "Invalid username or password."}, 401)
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.repositories.setdefault(name, {})
            self.server.visibility = asked.get("visibility") or asked.get("private")
            return self.answer({"url": f"http://{self.headers['Host']}/{name}"})
        name = re.match(r"/api/models/([^/]+/[^/]+)", path)[1]
        if "/preupload/" in path:
            how = {"uploadMode": "regular", "shouldIgnore": False}
            return self.answer(
                {"files": [how | {"path": file["path"]} for file in json.loads(body)["files"]]}
            )
        for operation in map(json.loads, body.splitlines()):
            if operation["key"] == "file":
                value = operation["value"]
                self.server.repositories[name][value["path"]] = base64.b64decode(value["content"])
        address = f"http://{self.headers['Host']}/{name}/commit/{SHA}"
        return self.answer({"commitOid": SHA, "commitUrl": address})

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with the model me/digits, with a script and a pickle beside its files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    files = {path.name: path.read_bytes() for path in (published.FOLDER / "digits").iterdir()}
    server.repositories = {"me/digits": {**files, "setup.py": b"raise", "weights.pkl": b"x", "a/b.json": b""}}
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield server
    server.shutdown()
    server.server_close()


def test_a_model_is_downloaded_without_other_files(hub, tmp_path, digits):
    model = pairflow.load("hf:me/digits", device="cpu")
    np.testing.assert_array_equal(model.sample(3), digits.sample(3))
    assert (model.model.folder.name, model.nfe) == ("digits", digits.nfe)
    got = {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path}
    assert {"model.json", "model.safetensors"} <= got
    assert not got & {"setup.py", "weights.pkl", "b.json"}
    pairflow.load(f"hf:me/digits@{SHA}", device="cpu").save(tmp_path / "copy")
    assert not (tmp_path / "copy/model.safetensors").is_symlink()


def test_it_is_checked_as_any_model(hub):
    hub.repositories["me/digits"]["model.safetensors"] += b"x"
    with pytest.raises(InputError, match="these are not the weights that"):
        pairflow.load("hf:me/digits", device="cpu")


def test_a_command_takes_it_and_removes_what_is_temporary(hub, tmp_path, monkeypatch, digits):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    digits.save(tmp_path / "mine.zip")
    drawn = []
    for model in ("hf:me/digits", str(tmp_path / "mine.zip"), "digits"):
        out = tmp_path / "drawn.npy"
        words = ["sample", "--model", model, "--count", "4", "--out", str(out), "--quiet", "--device", "cpu"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        drawn.append(out.read_bytes())
    assert drawn[0] == drawn[1] == drawn[2]
    assert not list(tmp_path.glob("pairflow-*"))


def test_a_pushed_model_can_be_loaded(hub, digits):
    rows = np.eye(5, dtype=int)[np.arange(40) % 5]
    made = pairflow.train(rows, vocabulary_size=2, iterations=2, progress=False)
    page = made.push_to_hub("me/new", private=True, token=TOKEN)
    assert page.endswith("/me/new")
    assert hub.visibility in ("private", True)
    files = hub.repositories["me/new"]
    assert {"README.md", "log.parquet", "model.json", "model.safetensors"} <= set(files)
    assert not [name for name in files if "provenance" in name]
    assert hub.card == {"library_name": "pairflow", "tags": ["discrete-flow-matching", "token-rows"]}
    text = files["README.md"].decode()
    assert "A model of token rows by pairflow " in text
    assert ", N = 5, K = 2 symbols.\n" in text
    assert 'pairflow.load("hf:me/new")' in text
    np.testing.assert_array_equal(pairflow.load("hf:me/new").sample(3, nfe=2), made.sample(3, nfe=2))
    digits.push_to_hub("me/old", token=TOKEN)
    assert hub.repositories["me/old"]["README.md"] == (published.FOLDER / "digits/README.md").read_bytes()


def test_errors_are_one_line(hub, monkeypatch, digits):
    expected = {
        "hf:me/none": "hf:me/none: the hub has no such model; if it is private, log in by `hf auth login`",
        "hf:me/digits@old": "hf:me/digits@old: the hub has no such revision of it",
        "hf:digits": "hf:digits: expected hf:owner/name or hf:owner/name@revision",
    }
    for address, text in expected.items():
        with pytest.raises(InputError, match=f"^[^\n]*{re.escape(text)}[^\n]*$"):
            pairflow.load(address)
    with pytest.raises(InputError, match=r"^hf:me/a: the hub refused it; log in by `hf auth login`.*$"):
        digits.push_to_hub("me/a")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"^hf:me/digits: ConnectError: [^\n]*refused$"):
        pairflow.load("hf:me/digits")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r'^needs huggingface_hub, .*: pip install "pairflow\[hub\]"$'):
        pairflow.load("hf:me/digits")


def test_a_card_says_what_a_model_makes_and_needs():
    qm9 = Model.load(published.FOLDER / "qm9")
    text = card(qm9, "me/small")
    assert "`ot`, N = 24, K = 40 symbols" in text
    assert "tags: [discrete-flow-matching, molecules]" in text
    assert "network=" not in text
    classes = Properties((Classes.from_values("qed", np.arange(9.0), ("low", "high")),))
    other = replace(qm9, network_settings={"name": "recurrent"}, condition=classes)
    text = card(other, "me/small")
    assert " Conditions: qed=low or high.\n" in text
    assert f"network={type(qm9.network).__name__})" in text
