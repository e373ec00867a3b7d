"""`pairflow doctor`: on this machine, and in broken worlds that are made for real."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pairflow.checkup import hardware, imports, processes, software
from pairflow.checkup.requirements import findings, guarded
from pairflow.cli import main
from pairflow.config import Images, Molecules
from pairflow.data import download, image_files
from pairflow.data.sources import IMAGES, MOLECULES, source_of
from pairflow.data.status import Condition, Finding

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = REPOSITORY / "workflow_config.yaml"
BROKEN = "raise RuntimeError('made to fail\\nin two lines')\n"


@pytest.fixture(autouse=True)
def activated(monkeypatch):
    """As in a shell in which the environment of these tests is activated."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The shipped configuration in a folder of its own, an empty cache, no folder of data."""
    shutil.copy(SHIPPED, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PAIRFLOW_DATA_DIR", raising=False)
    return tmp_path


def broken_world(tmp_path, **modules: str) -> dict[str, str]:
    """An environment in which Python finds these modules first, of such content."""
    world = tmp_path / "world"
    world.mkdir()
    for name, content in modules.items():
        (world / f"{name}.py").write_text(content)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(world), str(REPOSITORY)])}


def test_this_machine_has_what_the_tests_need(folder, monkeypatch):
    monkeypatch.setattr(software, "IMPORT_SECONDS", 300.0)
    run = CliRunner().invoke(main, ["doctor", "--offline"])
    assert run.exit_code == 0, run.output
    found = {line[2:25].strip(): line for line in run.output.splitlines() if line.startswith("  ")}
    for name in ("Python", "torch", "torchvision", "RDKit", "Snakemake", "results folder", "memory", "cores"):
        assert " ok " in found[name], found[name]
    assert "part of pairflow" in found["data: small_molecules"]
    assert "to be downloaded; the network was not asked (qm9_small, qm9)" in found["data: qm9"]
    assert "Nothing needs attention" in run.output
    assert "\x1b" not in run.output  # no colours where there is no terminal


def test_every_failure_of_an_import_is_a_line(tmp_path):
    """Python and the command start; each package fails in its own way."""
    world = broken_world(
        tmp_path,
        numpy=BROKEN,
        torch="import os; os._exit(7)\n",
        torchvision="raise SystemExit('gone')\n",
        snakemake="def (\n",
        rdkit="import absent_of_rdkit\n",
        snakemake_executor_plugin_slurm="raise KeyboardInterrupt\n",
        cupy="print('{}'); raise OSError('libcuda')\n",
    )
    command = [sys.executable, "-m", "pairflow.steps.doctor", "--config", SHIPPED, "--offline"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=world)
    assert run.returncode == 1
    assert "Traceback" not in run.stdout + run.stderr
    assert "core packages          needs attention     RuntimeError: made to fail in two lines" in run.stdout
    assert "torch                  needs attention     the import ended Python with code 7" in run.stdout
    assert "torchvision            needs attention     SystemExit: gone" in run.stdout
    assert "Snakemake              needs attention     SyntaxError:" in run.stdout
    assert "RDKit                  needs attention     No module named 'absent_of_rdkit'" in run.stdout
    assert "executor plugin        needs attention     KeyboardInterrupt:" in run.stdout
    assert "CuPy                   needs attention     OSError: libcuda" in run.stdout
    assert "-> pip install --force-reinstall torch\n" in run.stdout
    assert "not checked, because the core packages cannot be imported" in run.stdout


def test_an_import_that_never_ends_is_given_up(tmp_path, monkeypatch):
    world = broken_world(tmp_path, cupy="import time; time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", world["PYTHONPATH"])
    monkeypatch.setattr(software, "IMPORT_SECONDS", 0.5)
    finding = software.cupy(software.import_apart(("cupy",)), [])
    assert finding.condition is Condition.ATTENTION
    assert finding.text.startswith("the import timed out after 0.5 s")
    assert finding.remedy == 'time python -c "import cupy"'


def test_a_program_that_never_ends_takes_its_children_with_it(tmp_path):
    with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"):
        processes.run(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"], 0.5)
    child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    while child.exists() and child.read_text().split()[2] != "Z":  # a signal may take a while to arrive
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_snakemake_has_to_be_on_the_path(monkeypatch, tmp_path):
    fine = software.package("Snakemake", {"version": "9.27.1"})
    assert software.on_the_path(fine) == fine == Finding.ok("9.27.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert software.on_the_path(fine) == Finding.attention(
        "9.27.1, but there is no command snakemake on the PATH", f"source {sys.prefix}/bin/activate"
    )


def test_missing_and_old_packages(monkeypatch):
    monkeypatch.setattr(software, "_bounds", lambda name: ">=9.10")
    assert software.package("Snakemake", {"version": "8.1"}) == Finding.attention(
        "8.1, expected >=9.10", "pip install 'snakemake>=9.10'"
    )
    assert software.package("Snakemake", {"missing": "snakemake"}, "the workflow") == Finding.attention(
        "no snakemake, which the workflow needs", 'pip install "pairflow[workflow]"'
    )
    finding = software.package("executor plugin", {"missing": "x"})
    assert (finding.condition, finding.text) == (Condition.OPTIONAL, "not installed; for jobs on SLURM")


def test_what_is_imported_says_its_version():
    import click

    assert imports.main("absent_of_all") == {"missing": "absent_of_all"}
    assert imports.main("yaml")["version"]
    assert imports.main("click.testing") == {"version": None}
    assert click  # the distribution's own version is asked for then


@pytest.mark.parametrize(
    ("script", "condition", "text"),
    [
        (None, Condition.OPTIONAL, "no nvidia-smi; no NVIDIA GPU here: every step runs on the CPU"),
        ("echo 'H200, 580.1, 143771 MiB'", Condition.OK, "H200, 580.1, 143771 MiB"),
        ("echo no driver >&2; exit 9", Condition.ATTENTION, "nvidia-smi fails: no driver"),
        ("sleep 600", Condition.ATTENTION, "nvidia-smi: no answer within 0.5 s"),
    ],
)
def test_the_driver(tmp_path, monkeypatch, script, condition, text):
    monkeypatch.setattr(software, "DRIVER_SECONDS", 0.5 if script == "sleep 600" else 60.0)
    path = os.environ["PATH"]
    if script is not None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{path}"
    elif shutil.which("nvidia-smi"):
        pytest.skip("there is a driver here")
    monkeypatch.setenv("PATH", path)
    finding, gpus = software.driver()
    assert (finding.condition, finding.text) == (condition, text)
    assert gpus == (["H200"] if condition is Condition.OK else [])


def test_a_gpu_that_torch_does_not_use_needs_attention():
    built = {"version": "2.15", "cuda": "13.2", "devices": []}
    assert software.cuda(built, []).condition is Condition.OPTIONAL
    line = software.cuda(built, ["H200"])
    assert line.condition is Condition.ATTENTION
    assert line.text.startswith("torch is built for CUDA 13.2, but finds no GPU")
    line = software.cuda({**built, "cuda": None}, ["H200"])
    assert (line.text, line.remedy) == (
        "torch is built without CUDA, and there is a GPU",
        "pip install --force-reinstall torch",
    )
    assert software.cuda({**built, "devices": ["H200"]}, ["H200"]).text == "13.2 on H200"
    assert software.cuda({"error": "x"}, []).condition is Condition.OPTIONAL
    facts = {"version": "99", "lacks": "needs a CUDA device, and none is visible"}
    assert software.cupy(facts, []).condition is Condition.OPTIONAL
    assert software.cupy(facts, ["H200"]).condition is Condition.ATTENTION


def test_results_that_cannot_be_written(tmp_path):
    assert hardware.results(tmp_path).condition is Condition.OK
    assert not (tmp_path / "results").exists()
    (tmp_path / "results").symlink_to("/proc")  # where nobody can make a file, not even root
    finding = hardware.results(tmp_path)
    assert finding.condition is Condition.ATTENTION
    assert finding.text.startswith(f"{tmp_path}/results cannot be written to: ")
    (tmp_path / "results").unlink()
    (tmp_path / "results").write_text("")
    assert hardware.results(tmp_path).text == f"{tmp_path}/results is a file"


def test_a_full_disk_and_little_memory_need_attention(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "LEAST_DISK", 2**80)
    line = hardware.results(tmp_path)
    assert (line.condition, line.remedy) == (Condition.ATTENTION, f"df -h {tmp_path}")
    monkeypatch.setattr(hardware, "_limit", lambda: 2**30)
    line = hardware.memory()
    assert line.condition is Condition.ATTENTION
    assert line.text.startswith("1.0 GB, limited from this machine's ")


def offline(name):
    return (MOLECULES | IMAGES)[name].status(offline=True)


def test_a_cached_table_is_checked(folder):
    cached = MOLECULES["qm9"].table.cached_copy
    cached.parent.mkdir(parents=True)
    cached.write_text("name,smiles\n" + "1,C\n" * 7)
    assert offline("qm9") == Finding.attention(f"{cached}: 7 rows, expected 133,885", f"rm -r {cached}")
    cached.write_bytes(b"<html>")
    assert offline("qm9").text == f"{cached}: no column 'smiles'"
    cached.write_text("smiles\n" + "C\n" * 133_885)
    assert offline("qm9") == Finding.ok(str(cached))
    cached = MOLECULES["zinc250k"].table.cached_copy
    cached.write_text("smiles\n")
    assert offline("zinc250k").text == f"{cached}: not the published file, by its checksum"


def test_a_broken_local_copy_is_named(folder, monkeypatch):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder))
    (folder / "qm9.csv.gz").write_bytes(b"\x1f\x8b\x08 cut off")
    finding = offline("qm9")
    assert finding.condition is Condition.ATTENTION
    assert finding.text.startswith(f"{folder}/qm9.csv.gz: not readable: ")
    (folder / "mnist").mkdir()
    assert (
        offline("mnist_binary").text
        == f"{folder}/mnist/train-images-idx3-ubyte: no such file, gzipped or not"
    )
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder / "absent"))
    finding = guarded(lambda: offline("qm9"))
    assert finding.text == f"InputError: PAIRFLOW_DATA_DIR: expected a folder, found none at {folder}/absent"


def test_real_data_in_the_folder_are_whole(data_dir):
    for name in ("qm9", "zinc250k", "mnist_binary"):
        assert offline(name).condition is Condition.OK


def test_an_unreachable_publisher(folder, monkeypatch):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", address)
        monkeypatch.setenv("https_proxy", address)
        finding = MOLECULES["qm9"].status()
    assert finding.condition is Condition.ATTENTION
    assert finding.text.startswith("cannot be downloaded: ProxyError: ")
    assert finding.remedy == "export PAIRFLOW_DATA_DIR=<a folder with qm9.csv.gz>"


def test_a_publisher_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(download, "ANSWER_SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        finding = download.downloadable([url], "x", offline=False)
    assert finding.condition is Condition.ATTENTION
    assert finding.text.startswith("cannot be downloaded: ")


def test_images_that_torchvision_keeps(folder, monkeypatch):
    cached = download.cache() / "cifar-10-batches-py"
    assert offline("cifar10") == Finding.optional("to be downloaded; the network was not asked")
    missing = IMAGES["cifar10"].status(offline=True, torchvision=False)
    assert missing.condition is Condition.ATTENTION
    assert missing.text == "CIFAR10: torchvision reads it, and cannot be imported"
    cached.mkdir(parents=True)
    finding = offline("cifar10")
    assert finding.text.startswith(f"{cached}: RuntimeError: Dataset not found or corrupted")
    assert finding.remedy == f"rm -r {cached}"
    monkeypatch.setattr(image_files, "read_torchvision", lambda *_, download: [])
    assert offline("cifar10") == Finding.ok(str(cached))


def test_own_files_and_folders(folder):
    smiles = source_of(Molecules(source="my.smi", length=8), folder)
    assert smiles.status().text == f"{folder}/my.smi: No such file or directory"
    (folder / "my.smi").touch()
    assert smiles.status().text == f"{folder}/my.smi: empty"
    (folder / "my.smi").write_text("C\n")
    assert smiles.status() == Finding.ok(f"{folder}/my.smi")
    pictures = source_of(Images(source="image_folder", folder="pictures"), folder)
    assert pictures.status().text == f"{folder}/pictures: no such folder"
    (folder / "pictures").mkdir()
    assert pictures.status().condition is Condition.OK


def test_a_missing_or_broken_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(software, "imported", lambda: {name: {"version": "1"} for name in software.PACKAGES})
    path = tmp_path / "workflow_config.yaml"
    found = dict(findings(path, offline=True))["configuration"]
    assert found.condition is Condition.ATTENTION
    assert found.text.endswith("no such file; go to the workflow's folder, or name it with --config")
    path.write_text("experiments: {")
    assert dict(findings(path, offline=True))["configuration"].text.startswith(f"{path}: not YAML: ")


def test_an_experiment_on_molecules_needs_rdkit(folder, monkeypatch):
    facts = {name: {"version": "1"} for name in software.PACKAGES} | {"RDKit": {"missing": "rdkit"}}
    monkeypatch.setattr(software, "imported", lambda: facts)
    assert (
        dict(findings(SHIPPED, offline=True))["RDKit"].text
        == "no rdkit, which an experiment on molecules needs"
    )
    assert dict(findings(folder / "absent.yaml", offline=True))["RDKit"].condition is Condition.OPTIONAL


def test_conditions_differ_without_colours():
    assert [str(condition) for condition in Condition] == ["ok", "missing (optional)", "needs attention"]
