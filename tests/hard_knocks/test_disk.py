"""A disk that is full or may not be written to: one line names it, and nothing is half-written."""

import contextlib
import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml

from pairflow.artifacts import Metadata, atomic
from pairflow.cli import COMMANDS, STEPS
from pairflow.config.file import read
from pairflow.errors import InputError
from pairflow.kinds.molecules import files as molecule_files
from pairflow.runtime.snapshots import Snapshots

CHAIN = ["preprocess", "pair", "cover", "diagnose", "train", "sample", "describe_molecules", "evaluate"]
CHAIN += ["teach", "distill", "report"]
MINI, DIGITS = "results/mini", "results/mini/digits"
MODEL = [f"{MINI}/seed0/models/pairflow", f"{DIGITS}/model", f"{MINI}/text/model", f"{MINI}/vectors/model"]
REAL = ["--tokens", f"{DIGITS}/train.parquet", "--validation", f"{DIGITS}/validation.parquet"]
CLASSIFIER = ["--weights", "digits"]
COMPARED = [*REAL, *CLASSIFIER]
COMPARED += ["--train-reference", f"{DIGITS}/train-reference.parquet"]
COMPARED += ["--test-reference", f"{DIGITS}/test-reference.parquet"]
ROWS = ["--tokens", f"{MINI}/data/train.parquet", "--validation", f"{MINI}/data/validation.parquet"]
TEXT = f"{MINI}/text"
REAL_TEXT = ["--tokens", f"{TEXT}/train", "--validation", f"{TEXT}/validation", "--judge", f"{TEXT}/judge"]
REAL_TEXT += ["--vocabulary", f"{TEXT}/vocabulary"]
VECTORS = f"{MINI}/vectors"
REAL_VECTORS = ["--tokens", f"{VECTORS}/train", "--validation", f"{VECTORS}/validation"]
LEARN = {
    "method": "udlm",
    "network": {"name": "mlp", "width": 16, "blocks": 1, "time_width": 8},
    "training": {"batch_size": 8, "iterations": 2, "learning_rate": 0.01},
}
BESIDE = {  # what is beside the miniature's chain -> its arguments, and the options of what it writes
    "preprocess images": (
        ["images", "--source", "digits"],
        {
            "train": f"{DIGITS}/train.parquet",
            "validation": f"{DIGITS}/validation.parquet",
            "vocabulary": f"{DIGITS}/vocabulary.json",
            "known": f"{DIGITS}/known.parquet",
        },
    ),
    "reference": ([*REAL[:2], *CLASSIFIER], {"out": f"{DIGITS}/train-reference.parquet"}),
    "floor images": (["images", *COMPARED, "--samples=20", "--trials=1"], {"out": f"{DIGITS}/floor.parquet"}),
    "sample images": (["--model", MODEL[1], "--nfe=1", "--samples=20"], {"out": f"{DIGITS}/samples.parquet"}),
    "evaluate images": (
        ["images", *COMPARED, "--samples", f"{DIGITS}/samples.parquet"],
        {"out": f"{DIGITS}/metrics.parquet"},
    ),
    "correlate": (
        ["--model", MODEL[0], "--tokens", f"{MINI}/data/train.parquet", "--sources", "8"],
        {"out": f"{MINI}/correlation.parquet"},
    ),
    "import": ([ROWS[1], "--vocabulary-size=99"], {"out": f"{MINI}/rows.parquet"}),
    "preprocess text": (
        ["text", "--source=shakespeare", "--tokeniser=characters", "--length=32", "--training-rows=99"],
        {
            name: f"{TEXT}/{name}"
            for name in ("train", "validation", "judge", "vocabulary", "known", "rejected")
        },
    ),
    "floor text": (["text", *REAL_TEXT, "--samples=9", "--trials=2"], {"out": f"{TEXT}/floor"}),
    "sample text": (["--model", MODEL[2], "--nfe=1", "--samples=9"], {"out": f"{TEXT}/samples"}),
    "evaluate text": (["text", *REAL_TEXT, "--samples", f"{TEXT}/samples"], {"out": f"{TEXT}/metrics"}),
    "preprocess tokens": (
        ["tokens", "--source=tokens", f"--file={ROWS[1]}", "--vocabulary-size=99"],
        {name: f"{MINI}/tokens/{name}" for name in ("train", "validation", "vocabulary", "known")},
    ),
    "floor tokens": (["tokens", *ROWS, "--samples=9", "--trials=2"], {"out": f"{MINI}/tokens/floor.parquet"}),
    "evaluate tokens": (
        ["tokens", *ROWS, "--samples", f"{MINI}/seed0/samples/pairflow/main/nfe1.parquet"],
        {"out": f"{MINI}/tokens/metrics.parquet"},
    ),
    "preprocess vectors": (
        ["vectors", "--source=two_moons", "--dims=2", "--training-rows=99", "--validation-rows=9"],
        {name: f"{VECTORS}/{name}" for name in ("train", "validation", "vocabulary", "known")},
    ),
    "floor vectors": (["vectors", *REAL_VECTORS, "--samples=9", "--trials=2"], {"out": f"{VECTORS}/floor"}),
    "sample vectors": (
        ["--model", MODEL[3], "--nfe=1", "--samples=9", "--solver=euler"],
        {"out": f"{VECTORS}/samples"},
    ),
    "evaluate vectors": (
        ["vectors", *REAL_VECTORS, "--samples", f"{VECTORS}/samples"],
        {"out": f"{VECTORS}/metrics"},
    ),
    "adopt": (
        [*ROWS, "--own", f"{MINI}/seed0/pairs/pairflow.parquet", "--coupling=pairs-mine"],
        {"out": f"{MINI}/tokens/pairs.parquet"},
    ),
    "gather": ([f"{MINI}/shards/{k}.parquet" for k in (1, 2)], {"out": f"{MINI}/gathered.parquet"}),
    "compare": ([MINI], {"out": f"{MINI}/comparison.html"}),
    "sample on demand": (
        ["--model", MODEL[0], "--count=3", "--nfe=1", "--raw"],
        {"out": f"{MINI}/molecules.smi"},
    ),
    "score": ([f"{MINI}/few.smi", "--model", MODEL[0], "--draws=2"], {"out": f"{MINI}/scores.csv"}),
}
NO_WRITERS = {"doctor", "estimate"}
# Tests of their own; steps run by Snakemake; a table like that of `reference`, by an optional package.
ELSEWHERE = {"init", "new", "run", "chemnet"}


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
def small(calm, place, disk, model_files):
    """The undisturbed miniature, with its results on that disk, and images beside it."""
    made = place("small")
    made.steps |= BESIDE
    shutil.copytree(calm.root, disk / "mini")
    made.root.parent.mkdir()
    made.root.symlink_to(disk / "mini")
    (made.root / "few.smi").write_text("C\nCC\nCO\n")
    for step in ("teach", "distill"):
        made.finish(step)
    learn = ["train", "--settings", json.dumps(LEARN), "--quiet"]
    images = [*learn, "--data", REAL[1], *REAL[2:]]
    images += [f"--{key}={file}" for key, file in model_files(MODEL[1]).items()]
    text = [*learn, "--data", REAL_TEXT[1], *REAL_TEXT[2:4]]
    text += [f"--{key}={file}" for key, file in model_files(MODEL[2]).items()]
    test = ["reference", "--tokens", REAL[3], *CLASSIFIER, "--out", COMPARED[-1], "--quiet"]
    pair = ["pair", "--tokens", f"{MINI}/data/train.parquet", "--steps", "3", "--quiet"]
    shards = [[*pair, "--shard", f"{k}/2", "--out", f"{MINI}/shards/{k}.parquet"] for k in (1, 2)]
    real = {**LEARN, "method": "condot", "training": {**LEARN["training"], "loss": "velocity"}}
    vectors = [
        "train",
        "--settings",
        json.dumps(real),
        "--quiet",
        "--data",
        REAL_VECTORS[1],
        *REAL_VECTORS[2:],
    ]
    vectors += [f"--{key}={file}" for key, file in model_files(MODEL[3]).items()]
    before = {"sample images": [images], "sample text": [text], "sample vectors": [vectors]}
    before |= {"floor images": [test], "gather": shards}
    for name in BESIDE:
        for arguments in [*before.get(name, []), made.command(name)]:
            assert made.run(*arguments) == 0, arguments
    return made


def fill(disk: Path) -> Path:
    """Take all that is free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
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
    named = {name.split()[0] for name in [*CHAIN, *BESIDE]}
    assert named | NO_WRITERS | ELSEWHERE == {*COMMANDS, *STEPS}


@pytest.mark.promise("disk")
@pytest.mark.parametrize("name", [*CHAIN, *BESIDE])
def test_a_full_disk_is_named_and_the_step_works_once_there_is_room(small, disk, name, capsys):
    before = {path: path.read_bytes() for path in small.outputs(name)}
    for path in before:
        path.unlink()
    with full(disk):
        assert small.run(*small.command(name)) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"pairflow {name.split()[0]}: error: results/mini/")
    assert line.endswith(no_room(disk))
    assert small.run(*small.command(name)) == 0
    for path, content in before.items():
        if path.suffix != ".html" and path.name not in ("log.parquet", "timings.parquet"):  # they have times
            assert path.read_bytes() == content


@pytest.mark.promise("disk")
def test_an_experiment_is_not_written_in_part_to_a_full_disk(small, disk, capsys):
    configuration = small.root / "workflow_config.yaml"
    text = yaml.safe_dump({"experiments": {"mini": small.experiment.model_dump(mode="json")}})
    configuration.write_text(text)
    (small.folder / "library.smi").write_text("".join(f"{n * 'C'}O\n{n * 'C'}N\n" for n in range(1, 61)))
    new = ["new", "library.smi", "--config", f"{MINI}/workflow_config.yaml"]
    new += ["--device", "cpu", "--no-estimate", "--quiet"]
    with full(disk):
        assert small.run(*new) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(no_room(disk))
    assert [*(small.root / "experiments").glob("*")] == []
    assert small.run(*new) == 0
    assert [*read(configuration).experiments] == ["mini", "library"]
    assert configuration.read_text() == text
    configuration.unlink()
    shutil.rmtree(small.root / "experiments")


@pytest.mark.promise("disk")
@pytest.mark.parametrize("suffix", ["smi", "csv", "sdf", "parquet"])
def test_no_kind_of_file_of_molecules_is_cut_short_by_a_full_disk(disk, suffix):
    path = disk / f"molecules.{suffix}"
    write = molecule_files.writer(path, parsed=True, properties=False)
    table = pd.DataFrame({"name": ["a", "b"], "smiles": ["CCO", "CCN"]})
    with full(disk), pytest.raises(InputError, match=no_room(disk)), atomic(path) as [temporary]:
        write(temporary, table, Metadata(kind="molecules"))


@pytest.mark.promise("disk")
def test_a_full_disk_costs_no_state_that_was_saved(disk):
    snapshots, small = Snapshots(disk / "states"), torch.arange(10**5)
    snapshots.save(1, {"a": small})
    with pytest.raises(InputError, match=r"2\.state: cannot be written: No space left on device"):
        snapshots.save(2, {"a": torch.arange(2 * 10**6)})
    assert torch.equal(snapshots.load()[1]["a"], small)
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


@pytest.mark.promise("disk")
@pytest.mark.parametrize("step", ["pair", "train", "sample", "evaluate", "report"])
def test_results_that_may_not_be_written_are_named(sealed, disk, step, capsys):
    before = everything(disk)
    assert sealed.run(*sealed.command(step)) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "cannot be written: Read-only file system, disk " in line
    assert everything(disk) == before
