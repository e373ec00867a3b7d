"""Parquet contracts: round trips, whole-or-nothing writes, refusals by name."""

import hashlib
import itertools
import multiprocessing
import os
import platform
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pairflow
from pairflow.artifacts import (
    Metadata,
    Provenance,
    atomic,
    read_metadata,
    read_provenance,
    read_rows,
    read_table,
    replacing,
    tables,
    token_array,
    token_column,
    token_dtype,
    write_table,
)
from pairflow.artifacts.provenance import checkout
from pairflow.errors import InputError


@pytest.mark.parametrize(
    ("vocabulary_size", "dtype"), [(2, "uint8"), (256, "uint8"), (257, "uint16"), (65536, "uint16")]
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
    for name, parameters in {"a": {"b": 1, "a": 2}, "b": {"a": 2, "b": 1}}.items():
        write_table(tmp_path / name, pa.table({"x": [1, 2]}), Metadata("tokens", parameters=parameters))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_large_tables_are_read_in_parts(tmp_path, monkeypatch):
    """With small parts: 1,000 rows in row groups of 300, which are read 70 at a time."""
    rows = np.random.default_rng(0).integers(0, 9, (1000, 4))
    table = pa.table({"tokens": token_column(rows, 9)})
    metadata = Metadata("tokens", length=4, vocabulary_size=9)
    monkeypatch.setattr(tables, "_GROUP_ROWS", 300)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 70)
    path = tmp_path / "rows.parquet"
    write_table(path, table, metadata)
    assert pq.ParquetFile(path).num_row_groups == 4
    read, known = read_table(path, "tokens")
    assert read["tokens"].num_chunks > 4
    assert np.array_equal(token_array(read["tokens"]), rows)
    assert known == metadata
    content = bytearray(path.read_bytes())
    content[pq.read_metadata(path).row_group(2).column(0).data_page_offset + 40] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"rows\.parquet: part 3 of 4 is damaged, or not a Parquet file"):
        read_table(path, "tokens")


def test_a_failed_write_leaves_nothing_and_keeps_what_was_there(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    with pytest.raises(RuntimeError), atomic(first, second) as [one, two]:  # noqa: PT012
        one.write_text("new")
        two.write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
    assert first.read_text() == "old"
    with pytest.raises(FileNotFoundError), atomic(first, second) as [one, _]:
        one.write_text("new")  # and the second is missing
    assert first.read_text() == "old"


def test_errors_name_the_file_and_what_was_found(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(InputError, match=r"x\.parquet: no such file"):
        read_table(path)
    pq.write_table(pa.table({"a": [1]}), path)
    advice = {"tokens": "`pairflow preprocess tokens` makes", "pairs": "`pairflow.write_pairs` makes"}
    for kind, text in advice.items():
        with pytest.raises(InputError, match=rf"x\.parquet: was not written by pairflow; {text} such a file"):
            read_table(path, kind)
    with pytest.raises(InputError, match=r"x\.parquet: was not written by pairflow$"):
        read_metadata(path)
    path.write_bytes(path.read_bytes()[:9])
    with pytest.raises(InputError, match=r"x\.parquet: damaged, or not a Parquet file that pairfl"):
        read_table(path)
    write_table(path, pa.table({"a": [1]}), Metadata(kind="pairs"))
    with pytest.raises(InputError, match=r"x\.parquet: holds pairs, expected tokens or samples"):
        read_table(path, "tokens", "samples")


def test_provenance_holds_no_folder_of_this_machine(tmp_path, monkeypatch):
    installation, home, here = Path(pairflow.__file__).parent.parent, tmp_path / "home", tmp_path / "project"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    words = [f"{installation}/steps/train.py", "--parent", f"{installation}/pairflow/models/zinc250k"]
    words += [f"--out={here}/a.parquet", f"--root={here}", f'--settings={{"source": "{home}/me/a.smi"}}']
    words += [f"{home}", f"{home}2/a.smi", "/data/a.smi", f"/mnt{home}/a.smi", "results/a.smi"]
    monkeypatch.setattr("sys.argv", words)
    Provenance().write(tmp_path / "x.parquet")
    kept = ["train.py", "--parent", "./pairflow/models/zinc250k", "--out=./a.parquet", "--root=./"]
    kept += ['--settings={"source": "~/me/a.smi"}', "~/", *words[-4:]]
    assert read_provenance(tmp_path / "x.parquet")["command"] == kept


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
    facts = written(tmp_path / "a", Provenance("cuda", samples=32))
    assert (facts["device"], facts["samples_seen"]) == ("cuda", 32)
    assert facts["versions"]["pairflow"]
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
    with pytest.raises(InputError, match=f"token {token} cannot be stored with a vocabulary of 256 symbols"):
        token_column(tokens, 256)


def test_every_file_can_be_read_by_those_whom_the_umask_allows(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic(tmp_path / "mine") as [temporary]:
            temporary.touch(mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o640


SHAPED = "{{'descr': '|u1', 'fortran_order': False, 'shape': {}}}\n"
NOT_NUMBERS = "not a .npy array of numbers"


@pytest.mark.parametrize(
    ("header", "length", "text"),
    [
        (SHAPED.format((10**12, 6)), None, "needs more memory than there is: Unable to allocate 5.46 TiB"),
        (SHAPED.format((3, 6)), None, NOT_NUMBERS),
        ("((((", None, NOT_NUMBERS),
        ("{}", 2**32 - 1, NOT_NUMBERS),
    ],
)
def test_a_crafted_header_of_an_array_is_refused(tmp_path, header, length, text):
    start = b"\x93NUMPY\x02\x00" + struct.pack("<I", length or len(header))
    (tmp_path / "rows.npy").write_bytes(start + header.encode())
    with pytest.raises(InputError, match=f"rows.npy: {text}"):
        read_rows(tmp_path / "rows.npy", 6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_were_appended_to_one_file_are_refused(tmp_path, order):
    rows = np.zeros((4, 6), "u1", order)
    with (tmp_path / "rows.npy").open("wb") as file:
        np.save(file, rows)
    assert len(read_rows(tmp_path / "rows.npy", 6)) == 4
    with (tmp_path / "rows.npy").open("ab") as file:
        np.save(file, rows)
    with pytest.raises(InputError, match=r"rows\.npy: several arrays; expected a \.npy file with one"):
        read_rows(tmp_path / "rows.npy", 6)


LIST = ".pairflow-files"


def put(folder, **texts):
    """Write files with these texts to a folder for outputs."""
    with replacing(folder) as temporary:
        for name, text in texts.items():
            (temporary / name).write_text(text)


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def entries(**texts):
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in texts.items())


def test_own_files_take_the_place_of_earlier_ones_and_of_nothing_else(tmp_path):
    folder = tmp_path / "deep" / "figures"
    put(folder, a="1", b="1")
    (folder / "mine.pdf").write_text("mine")
    (folder / "b").write_text("changed by hand")
    (folder / "sub").mkdir()
    put(folder, a="2", c="2")
    (folder / "sub").rmdir()
    kept = {"mine.pdf": "mine", "b": "changed by hand"}
    new = {"a": "2", "c": "2"}
    assert {name: text for name, text in texts(folder).items() if name != LIST} == kept | new
    assert sorted(texts(folder)[LIST].splitlines()) == sorted(entries(**new).splitlines())
    assert [path.name for path in folder.parent.iterdir()] == ["figures"]


@pytest.mark.parametrize("kind", ["foreign", "changed", "folder", "link"])
def test_a_file_that_is_not_ours_gives_way_to_none(tmp_path, kind):
    folder, mine = tmp_path / "figures", tmp_path / "figures" / "b"
    put(folder, a="1", **({"b": "1"} if kind == "changed" else {}))
    other = tmp_path / "other"
    other.write_text("2")
    if kind == "folder":
        mine.mkdir()
    elif kind == "link":
        mine.symlink_to(other)
    else:
        mine.write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="figures/b: is there, and is no file that pairflow has written"):
        put(folder, a="2", b="3")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"figures", "other"}


def test_a_process_killed_before_any_of_its_moves_loses_nothing_and_the_next_one_ends_the_same(tmp_path):
    """It dies before its first, second, ... rename or removal, until one lives through all of them."""
    old, new, mine = {"a": "old", "b": "old", "c": "old"}, {"b": "new", "c": "new", "d": "new"}, "mine.pdf"
    moves = 0
    while True:
        moves += 1
        folder = tmp_path / str(moves)
        put(folder, **old)
        (folder / mine).write_text("mine")
        child = multiprocessing.get_context("fork").Process(target=_die_at, args=(moves, folder, new))
        child.start()
        child.join()
        left = texts(folder)
        assert left.pop(mine) == "mine"
        left.pop(LIST)
        own = {name: text for name, text in left.items() if not name.endswith(".partial")}
        assert own.keys() >= {"b", "c"}
        assert all(text in (old.get(name), new.get(name)) for name, text in own.items())
        put(folder, d="last")
        assert texts(folder) == {mine: "mine", "d": "last", LIST: entries(d="last")}
        assert {path.name for path in tmp_path.iterdir()} == {str(number + 1) for number in range(moves)}
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
    assert moves == 7  # three moves, a removal, the list before and after; then none


def _die_at(count, folder, new):
    left = itertools.count(1)
    for name in ("replace", "unlink"):
        real = getattr(Path, name)

        def counted(self, *given, real=real, **options):
            if self.exists() and next(left) == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(self, *given, **options)

        setattr(Path, name, counted)
    put(folder, **new)


def test_what_killed_processes_have_left_is_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f".figures.{platform.node()}.{ended.pid}.partial").mkdir()
    (tmp_path / f".figures.{platform.node()}.{os.getppid()}.partial").mkdir()  # of one that still runs
    put(tmp_path / "figures")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"figures", f".figures.{platform.node()}.{os.getppid()}.partial"}
