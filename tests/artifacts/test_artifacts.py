"""Parquet contracts: round trips, whole-or-nothing writes, refusals by name."""

import errno
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pairflow.artifacts import (
    Metadata,
    Provenance,
    atomic,
    atomic_folder,
    read_metadata,
    read_provenance,
    read_table,
    token_array,
    token_column,
    token_dtype,
    write_table,
)
from pairflow.artifacts.provenance import checkout
from pairflow.errors import InputError


@pytest.mark.parametrize(
    ("vocabulary_size", "dtype"),
    [(2, "uint8"), (256, "uint8"), (257, "uint16"), (65536, "uint16")],
)
def test_token_rows_round_trip_in_the_smallest_dtype(tmp_path, vocabulary_size, dtype):
    tokens = np.array([[0, 1, vocabulary_size - 1], [1, 0, 1]])
    assert token_dtype(vocabulary_size) == dtype
    metadata = Metadata(kind="tokens", length=3, vocabulary_size=vocabulary_size, vocabulary="abc", padding=1)
    path = tmp_path / "rows.parquet"
    write_table(path, pa.table({"tokens": token_column(tokens, vocabulary_size)}), metadata)
    table, found = read_table(path, "tokens")
    assert found == metadata
    assert table.schema.field("tokens").type == pa.list_(pa.from_numpy_dtype(dtype), 3)
    np.testing.assert_array_equal(token_array(table["tokens"]), tokens)


def test_equal_tables_give_equal_bytes(tmp_path):
    for name in ("a", "b"):
        metadata = Metadata(kind="tokens", parameters={"b": 1, "a": 2})
        write_table(tmp_path / name, pa.table({"x": [1, 2]}), metadata)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failed_write_leaves_nothing_and_keeps_what_was_there(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    with pytest.raises(RuntimeError), atomic(first, second) as [one, two]:  # noqa: PT012
        one.write_text("new")
        two.write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
    assert first.read_text() == "old"


def test_one_missing_output_moves_none(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with pytest.raises(FileNotFoundError), atomic(first, second) as [one, _]:
        one.write_text("new")
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_file_and_what_was_found(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(InputError, match=r"x\.parquet: no such file"):
        read_table(path)
    pq.write_table(pa.table({"a": [1]}), path)
    advice = {"tokens": "`pairflow import` makes", "pairs": "`pairflow.write_pairs` makes"}
    for kind, text in advice.items():
        with pytest.raises(InputError, match=rf"x\.parquet: was not written by pairflow; {text} such a file"):
            read_table(path, kind)
    with pytest.raises(InputError, match=r"x\.parquet: was not written by pairflow$"):
        read_metadata(path)
    for write in (lambda: path.write_text("none"), lambda: path.write_bytes(path.read_bytes()[:9])):
        write()
        with pytest.raises(
            InputError, match=r"x\.parquet: damaged, or not a Parquet file that pairflow wrote"
        ):
            read_table(path)
    write_table(path, pa.table({"a": [1]}), Metadata(kind="pairs"))
    with pytest.raises(InputError, match=r"x\.parquet: holds pairs, expected tokens or samples"):
        read_table(path, "tokens", "samples")


def test_other_vocabulary_is_refused(tmp_path):
    with pytest.raises(InputError, match="a and b do not belong together: vocabulary 111 against 222"):
        Metadata(kind="samples", vocabulary="111").require_same_vocabulary("222", "a", "b")


def test_provenance_stands_beside_the_file(tmp_path):
    Provenance(samples=32).write(tmp_path / "x.parquet")
    facts = json.loads((tmp_path / "x.parquet.provenance.json").read_text())
    assert facts["seconds"] >= 0
    assert facts["peak_memory_mb"] > 10
    assert facts["versions"]["pairflow"]
    assert (facts["device"], facts["samples_seen"]) == ("cpu", 32)


def test_time_that_does_not_count_is_not_in_the_record(tmp_path):
    provenance = Provenance()
    with provenance.uncounted():
        time.sleep(0.5)
    assert written(tmp_path / "a", provenance)["seconds"] < 0.5


def test_the_commit_of_a_checkout_is_read_without_a_lock(tmp_path):
    def git(*arguments: str) -> str:
        person = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        command = ["git", *person, "-C", tmp_path, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert checkout(tmp_path) is None
    git("init")
    file, index = tmp_path / "file", tmp_path / ".git" / "index"
    file.write_text("one")
    git("add", "file")
    git("commit", "-m", "first")
    before = index.stat().st_mtime_ns
    os.utime(file, (0, 0))  # git would note the new time in its index
    assert checkout(tmp_path) == git("rev-parse", "HEAD")[:10]
    (tmp_path / "unknown").touch()
    file.write_text("two")
    assert checkout(tmp_path) == git("rev-parse", "HEAD")[:10] + "+"
    assert index.stat().st_mtime_ns == before


def written(path, provenance: Provenance) -> dict:
    provenance.write(path)
    return read_provenance(path)


def test_device_time_of_a_cpu_is_work_and_not_waiting(tmp_path):
    provenance = Provenance()
    time.sleep(0.2)
    waited = written(tmp_path / "a", provenance)
    assert waited["seconds"] >= 0.2
    assert waited["device_seconds"] < 0.1
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    assert 0.2 <= written(tmp_path / "a", provenance)["device_seconds"] < 0.5


def test_device_time_of_a_gpu_is_the_time_it_was_held(tmp_path, monkeypatch):
    memory = SimpleNamespace(cuda=SimpleNamespace(max_memory_allocated=lambda: 3 * 2**20))
    monkeypatch.setitem(sys.modules, "torch", memory)
    facts = written(tmp_path / "a", Provenance("cuda"))
    assert facts["device_seconds"] == facts["seconds"]
    assert facts["peak_memory_mb"] == 3.0


def test_earlier_work_is_added_and_the_largest_memory_stays(tmp_path):
    provenance = Provenance()
    provenance.add({"seconds": 100.0, "device_seconds": 200.0, "peak_memory_mb": 1e6})
    provenance.add({"seconds": 10.0, "device_seconds": 20.0, "peak_memory_mb": 1.0})
    facts = written(tmp_path / "a", provenance)
    assert 110 <= facts["seconds"] < 111
    assert 220 <= facts["device_seconds"] < 221
    assert facts["peak_memory_mb"] == 1e6


@pytest.mark.parametrize(
    ("earlier", "unknown"), [({"seconds": 1.0}, {"device_seconds"}), ({}, {"seconds", "device_seconds"})]
)
def test_what_is_not_known_of_a_part_is_not_known_of_the_whole(tmp_path, earlier, unknown):
    provenance = Provenance()
    provenance.add(earlier)
    facts = written(tmp_path / "a", provenance)
    assert {key for key in ("seconds", "device_seconds", "peak_memory_mb") if facts[key] is None} == unknown


@pytest.mark.parametrize(("token", "dtype"), [(256, np.uint16), (-1, np.int64)])
def test_a_token_that_does_not_fit_is_refused_and_not_wrapped(token, dtype):
    tokens = np.array([[0, 3], [token, 1]], dtype)
    with pytest.raises(InputError, match=f"token {token} cannot be kept with a vocabulary of 256 symbols"):
        token_column(tokens, 256)


def test_every_file_can_be_read_by_those_whom_the_umask_allows(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic(tmp_path / "mine") as [temporary]:
            temporary.touch(mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o640


def test_a_folder_takes_the_place_of_what_was_there(tmp_path):
    folder = tmp_path / "deep" / "figures"
    for name in ("old.pdf", "new.pdf"):
        with atomic_folder(folder) as temporary:
            (temporary / name).write_text(name)
            assert not (folder / name).exists()
        assert [path.name for path in folder.iterdir()] == [name]
    assert [path.name for path in folder.parent.iterdir()] == ["figures"]


def test_a_folder_that_fails_leaves_what_was_there(tmp_path):
    with atomic_folder(tmp_path / "figures") as temporary:
        (temporary / "a").write_text("whole")
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "figures") as temporary:  # noqa: PT012
        (temporary / "a").write_text("half")
        raise RuntimeError("full disk")
    assert (tmp_path / "figures" / "a").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


def test_a_folder_that_cannot_be_moved_leaves_what_was_there(tmp_path, monkeypatch):
    folder = tmp_path / "figures"
    with atomic_folder(folder) as temporary:
        (temporary / "a").write_text("whole")
    move = Path.replace

    def refused(self, target):
        if self.suffix == ".partial":
            raise OSError(errno.ENOSPC, "No space left on device")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(InputError, match="No space left"), atomic_folder(folder) as temporary:
        (temporary / "a").write_text("other")
    assert (folder / "a").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


def test_what_killed_processes_have_left_is_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    for end in ("partial", "old"):
        (tmp_path / f".figures.{platform.node()}.{ended.pid}.{end}").mkdir()
    (tmp_path / f".figures.{platform.node()}.{os.getppid()}.partial").mkdir()  # of one that still runs
    with atomic_folder(tmp_path / "figures"):
        pass
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"figures", f".figures.{platform.node()}.{os.getppid()}.partial"}
