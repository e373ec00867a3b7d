"""A disk that is full or may not be written to: one line names it, and nothing is half-written."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pairflow.cli import main
from pairflow.errors import InputError
from pairflow.steps._resume import Finished

WRITERS = ["preprocess", "pair", "cover", "diagnose", "train", "sample", "describe_molecules", "evaluate"]
WRITERS += ["teach", "distill", "report"]


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A disk of 8 MB in memory."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk to fill")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def small(calm, place, disk):
    """The undisturbed miniature, with its results on that disk."""
    made = place("small")
    shutil.copytree(calm.root, disk / "mini")
    made.root.parent.mkdir()
    made.root.symlink_to(disk / "mini")
    for step in ("teach", "distill"):
        made.finish(step)
    return made


def fill(disk: Path) -> Path:
    """Take all that is free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(disk).free == 0
    return filler


def run(place, step, monkeypatch) -> int:
    monkeypatch.chdir(place.folder)
    with pytest.raises(SystemExit) as end:
        main(place.command(step))
    return end.value.code


def everything(disk: Path) -> set[Path]:
    return {path for path in disk.rglob("*") if path.is_file()}


@pytest.mark.parametrize("step", WRITERS)
def test_a_full_disk_is_named_and_the_step_works_once_there_is_room(small, disk, step, monkeypatch, capsys):
    before = {path: path.read_bytes() for path in small.outputs(step)}
    for path in before:
        path.unlink()
    left = everything(disk)
    filler = fill(disk)
    try:
        code, found = run(small, step, monkeypatch), everything(disk) - {filler}
    finally:
        filler.unlink()
    lines = capsys.readouterr().err.splitlines()
    again = run(small, step, monkeypatch)
    assert (code, found, again) == (2, left, 0)
    assert lines[-1].startswith(f"pairflow {step}: error: results/mini/")
    assert lines[-1].endswith(f"cannot be written: No space left on device, disk {disk} has 0.0 MB free")
    for path, content in before.items():
        if path.name not in ("log.parquet", "timings.parquet", "report.html"):  # they have times
            assert path.read_bytes() == content


def test_a_full_disk_costs_no_state_that_was_saved(disk):
    finished, array = Finished(disk / "states"), np.arange(10**5)
    finished.save("0-1", array)
    with pytest.raises(InputError, match=r"0-1\.block: cannot be written: No space left on device"):
        finished.save("0-1", np.arange(2 * 10**6))
    assert (finished.load("0-1") == array).all()
    shutil.rmtree(disk / "states")


@pytest.fixture(scope="module")
def sealed(small, place, disk, tmp_path_factory):
    """The same results, seen through a mount that is read-only."""
    mount = str(tmp_path_factory.mktemp("sealed"))
    subprocess.run(["mount", "--bind", str(disk), mount], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
    made = place("on a sealed disk")
    made.root.parent.mkdir()
    made.root.symlink_to(Path(mount) / "mini")
    yield made
    subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.parametrize("step", ["pair", "train", "sample", "evaluate", "report"])
def test_results_that_may_not_be_written_are_named(sealed, disk, step, monkeypatch, capsys):
    before = everything(disk)
    assert run(sealed, step, monkeypatch) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "cannot be written: Read-only file system, disk " in line
    assert everything(disk) == before
