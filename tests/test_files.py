"""Whatever a user names as a file is a regular one of a bounded size, or is refused before it is opened.

JSON of others is an object of bounded size and depth, or is refused before memory is taken.
"""

import io
import json
import os
import tracemalloc
from contextlib import nullcontext

import pytest
from deadline import within

from pairflow import files
from pairflow.artifacts import read_object, read_rows, read_table
from pairflow.config.file import read
from pairflow.errors import InputError
from pairflow.kinds.images.data_sets import read_image
from pairflow.kinds.molecules.data.library import read_rows as read_molecules
from pairflow.kinds.text.data_sets import OwnText
from pairflow.kinds.text.tokenisers import load_tokeniser
from pairflow.kinds.vectors.data_sets import VectorFile
from pairflow.kinds.vectors.settings import Vectors
from pairflow.training.model import Model

READERS = {
    "configuration.yaml": read,
    "vocabulary.json": load_tokeniser,
    "object.json": read_object,
    "rows.npy": lambda path: read_rows(path, 5),
    "rows.parquet": lambda path: read_rows(path, 5),
    "table.parquet": lambda path: read_table(path, "tokens"),
    "vectors.npy": lambda path: VectorFile(path).read(Vectors(source="vectors", file=str(path))),
    "molecules.smi": lambda path: list(read_molecules(path)),
    "molecules.csv.gz": lambda path: list(read_molecules(path)),
    "text.txt": lambda path: OwnText(path).digest(),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_or_a_device_is_refused_before_it_is_opened(tmp_path, name):
    pipe, device = tmp_path / f"pipe-{name}", tmp_path / f"device-{name}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with within(20), pytest.raises(ValueError, match=path.name):
            READERS[name](path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "Git LFS pointer"),
        (b"\n<!DOCTYPE html>\n<html><title>Sign in</title></html>\n", "a web page"),
        (b"", "empty"),
    ],
)
def test_a_download_that_went_wrong_is_named_by_every_reader(tmp_path, content, reason):
    for name in READERS.keys() - {"vocabulary.json"}:  # a step writes it
        path, read_file = tmp_path / name, READERS[name]
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}: .*{reason}"):
            read_file(path)
    image = tmp_path / "image.png"
    image.write_bytes(content)
    with pytest.raises(InputError, match=rf"image\.png: .*{reason}"):
        read_image(image, None, None)


def test_the_text_is_read_with_one_kind_of_line_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("é\r\nb\rc\n".encode())
    assert files.read_text(path, 8) == "é\nb\nc\n"
    assert files.read_bytes(path, 8) == "é\r\nb\rc\n".encode()
    with pytest.raises(InputError, match=r"a\.txt: 8 bytes are more than the 7 that such a file may have$"):
        files.read_bytes(path, 7)
    path.write_bytes(b"\xef\xbb\xbfa")
    assert files.read_text(path, 8) == "a"
    path.write_bytes(b"a\xff")
    with pytest.raises(InputError, match=r"a\.txt: expected UTF-8 text, but byte 1 is not UTF-8$"):
        files.read_text(path, 7)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a\n\nb", ["a", "", "b"]),
        ("a\r\nb\rc\n", ["a", "b", "c"]),
        ("a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b\r\n", ["a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b"]),
    ],
)
def test_only_line_feeds_and_carriage_returns_end_lines(tmp_path, monkeypatch, text, lines):
    assert files.split_lines(text) == lines
    (path := tmp_path / "a.txt").write_bytes(text.encode())
    for size in range(1, 5):  # also if a batch ends between \r and \n
        monkeypatch.setattr(files, "_BATCH", size)
        with files.opened(path, "text") if text else nullcontext((io.BytesIO(), None)) as (content, _):
            assert [line.rstrip("\r\n") for line in files.lines_of(content, path, 20)] == lines


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("depth", [1, 60])
def test_an_object_comes_back(tmp_path, depth):
    path = tmp_path / "x.json"
    path.write_text(nested(depth))
    assert read_object(path) == json.loads(nested(depth))


@pytest.mark.promise("json")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nested(65), "nested too deeply"),
        (nested(100_000), "nested too deeply"),
        ("[1]", "no JSON object"),
        ("{", "Expecting property name"),
    ],
)
def test_what_is_no_object_or_too_deep_is_refused(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_object(path)


@pytest.mark.promise("json")
def test_a_description_of_200_megabytes_takes_no_memory(tmp_path):
    description = tmp_path / "model.json"
    with description.open("wb") as file:
        file.truncate(200 * 2**20)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"model\.json: .*: 200 MiB are more than 64"):
        Model.load(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
