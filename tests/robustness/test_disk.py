"""A disk that is full or may not be written to: one line names it, and nothing is half-written."""

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import torch
import yaml
from click.testing import CliRunner
from miniatures import EXPERIMENTS, calls_of, experiment

from pairflow.cli import COMMANDS, STEPS, main
from pairflow.config.file import read
from pairflow.errors import InputError
from pairflow.runtime.snapshots import Snapshots

CALLS = {}  # a command's name, and the kind of data -> the first such command of the small experiments
for kind in EXPERIMENTS:
    for call in calls_of(kind):
        by_kind = call.name in ("preprocess", "sample", "evaluate", "floor")
        if by_kind or call.name not in {name for name, _ in CALLS}:
            CALLS.setdefault((call.name, kind), call)
    on_demand = next((call for call in calls_of(kind) if "count" in call.options), None)
    if on_demand:
        CALLS["sample", "molecules on demand"] = on_demand
NO_WRITERS = {"doctor", "estimate", "models"}
# Tests of their own; steps run by Snakemake; a table like that of `reference`, by an optional package.
ELSEWHERE = {"init", "new", "run", "chemnet"}


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A disk of 16 MB in memory."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk to fill")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(params=CALLS, ids=" ".join)
def call(request, finish, disk, tmp_path, monkeypatch):
    """A command in a finished small experiment, whose results are on the disk."""
    kind = request.param[1].split()[0]
    made = finish(kind)
    shutil.copytree(made, tmp_path / "small", ignore=shutil.ignore_patterns("results"))
    shutil.copytree(made / "results", disk / "results")
    (tmp_path / "small/results").symlink_to(disk / "results")
    monkeypatch.chdir(tmp_path / "small")
    yield CALLS[request.param]
    shutil.rmtree(disk / "results")


def run(*words: str):
    return CliRunner().invoke(main, words)


def fill(disk: Path) -> Path:
    """Take all that is free."""
    filler = disk / "filler"
    for size in (2**20, 2**12):
        with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(size))
    assert shutil.disk_usage(disk).free == 0
    return filler


def everything(disk: Path) -> set[Path]:
    return {path for path in disk.rglob("*") if path.is_file()}


@contextlib.contextmanager
def full(disk: Path):
    """The disk without room; on it are the same files before and after."""
    left, filler = everything(disk), fill(disk)
    try:
        yield
        assert everything(disk) - {filler} == left
    finally:
        filler.unlink()


def no_room(disk: Path) -> str:
    return f"cannot be written: No space left on device, disk {disk} has 0.0 MB free"


def test_every_step_that_writes_is_tested():
    assert {name for name, _ in CALLS} | NO_WRITERS | ELSEWHERE == {*COMMANDS, *STEPS}


@pytest.mark.promise("disk")
def test_a_full_disk_is_named_and_the_step_works_once_there_is_room(call, disk, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = {path: path.read_bytes() for path in call.outputs if path.is_file()}
    for path in before:
        path.unlink()
    with full(disk):
        done = run(*call.words())
    assert done.exit_code == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"pairflow {call.name}: error: results/")
    rescued = tmp_path / "molecules.part.csv"  # molecules on demand, which may have taken hours
    saved = f" (the 3 found are saved in {rescued})" if rescued.exists() else ""
    assert bool(saved) is ("count" in call.options)
    assert line.endswith(no_room(disk) + saved)
    assert run(*call.words()).exit_code == 0
    for path, content in before.items():
        if path.suffix != ".html" and path.name not in ("log.parquet", "timings.parquet"):  # they have times
            assert path.read_bytes() == content


@pytest.mark.promise("disk")
def test_an_experiment_is_not_written_in_part_to_a_full_disk(disk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    configuration = disk / "workflow_config.yaml"
    text = yaml.safe_dump({"experiments": {"mini": experiment("molecules").model_dump(mode="json")}})
    configuration.write_text(text)
    Path("library.smi").write_text("".join(f"{n * 'C'}O\n{n * 'C'}N\n" for n in range(1, 61)))
    new = ["new", "library.smi", "--config", str(configuration), "--device", "cpu", "--no-estimate"]
    with full(disk):
        done = run(*new)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].endswith(no_room(disk))
    assert [*(disk / "experiments").glob("*")] == []
    assert run(*new).exit_code == 0
    assert [*read(configuration).experiments] == ["mini", "library"]
    assert configuration.read_text() == text
    configuration.unlink()
    shutil.rmtree(disk / "experiments")


@pytest.mark.promise("disk")
def test_a_full_disk_costs_no_state_that_was_saved(disk):
    snapshots, small = Snapshots(disk / "states"), torch.arange(10**5)
    snapshots.save(1, {"a": small})
    with pytest.raises(InputError, match=r"2\.state: cannot be written: No space left on device"):
        snapshots.save(2, {"a": torch.arange(2 * 10**6)})
    assert torch.equal(snapshots.load()[1]["a"], small)
    shutil.rmtree(disk / "states")


@pytest.mark.promise("disk")
@pytest.mark.parametrize("name", ["train", "report"])
def test_results_that_may_not_be_written_are_named(finish, disk, tmp_path, monkeypatch, name):
    """The results, seen through a mount that is read-only. The step does not begin its work."""
    made = finish("molecules")
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    subprocess.run(["mount", "--bind", str(made / "results"), "results"], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", "results"], check=True)
        before = everything(made)
        done = run(*next(call for call in calls_of("molecules") if call.name == name).words())
        assert everything(made) == before
    finally:
        subprocess.run(["umount", "-l", "results"], check=True)
    assert done.exit_code == 2
    assert "cannot be written: Read-only file system, disk " in done.stderr.splitlines()[-1]
