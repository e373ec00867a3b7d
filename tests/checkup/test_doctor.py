"""`pairflow doctor`: on this machine, and in broken worlds that are made for real."""

import os
import shlex
import shutil
import socket
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pairflow.checkup import hardware, imports, processes, software
from pairflow.checkup.requirements import findings, guarded
from pairflow.cli import main
from pairflow.data import download
from pairflow.data.status import Condition, Finding
from pairflow.kinds import kind_of
from pairflow.kinds.images import data_sets as image_sets
from pairflow.kinds.images.data_sets import DATA_SETS as IMAGES
from pairflow.kinds.images.settings import Images
from pairflow.kinds.molecules.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.settings import Molecules

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = REPOSITORY / "workflow_config.yaml"
BROKEN = {  # the name of a package on the screen -> its module, the content, what is wrong with it
    "core packages": ("numpy", "raise OSError('in\\ntwo lines')", "OSError: in two lines"),
    "torch": ("torch", "import os; os._exit(7)", "the import ended Python with code 7"),
    "torchvision": ("torchvision", "raise SystemExit('gone')", "SystemExit: gone"),
    "Snakemake": ("snakemake", "def (", "SyntaxError:"),
    "RDKit": ("rdkit", "import absent_of_rdkit", "No module named 'absent_of_rdkit'"),
    "executor plugin": ("snakemake_executor_plugin_slurm", "raise KeyboardInterrupt", "KeyboardInterrupt:"),
    "CuPy": ("cupy", "print('{}'); raise OSError('libcuda')", "OSError: libcuda"),
}


@pytest.fixture(autouse=True)
def activated(monkeypatch):
    """As in a shell in which the environment of these tests is activated."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


@pytest.fixture
def folder(project, monkeypatch):
    """The shipped configuration in a folder of its own, an empty cache, no folder of data."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    monkeypatch.delenv("PAIRFLOW_DATA_DIR", raising=False)
    return project


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder in which Python looks for modules first."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(REPOSITORY)]))
    return tmp_path


def line(finding):
    """A finding as on the screen, in one line."""
    return f"{finding.condition}: {finding.text}" + f" -> {finding.remedy}" * bool(finding.remedy)


def test_this_machine_has_what_the_tests_need(folder, monkeypatch):
    monkeypatch.setattr(software, "IMPORT_SECONDS", 300.0)
    run = CliRunner().invoke(main, ["doctor", "--offline"])
    assert run.exit_code == 0, run.output
    found = {line[2:25].strip(): line for line in run.output.splitlines() if line.startswith("  ")}
    for name in ("Python", "torch", "torchvision", "RDKit", "Snakemake", "results folder", "memory", "cores"):
        assert " ok " in found[name], found[name]
    assert "part of pairflow" in found["data: small_molecules"]
    text = "missing (optional)  to be downloaded; the network was not asked (qm9_small, qm9)"
    assert text in found["data: qm9"]
    assert "Nothing needs attention" in run.output
    assert "\x1b" not in run.output  # no colours where there is no terminal


def test_every_failure_of_an_import_is_a_line(world, pairflow_command):
    """Python and the command start; each package fails in its own way."""
    for module, content, _ in BROKEN.values():
        (world / f"{module}.py").write_text(content)
    run = pairflow_command("doctor", "--config", SHIPPED, "--offline")
    assert run.returncode == 1
    assert "Traceback" not in run.stdout + run.stderr
    for name, (_, _, text) in BROKEN.items():
        assert f"  {name:<23}needs attention     {text}" in run.stdout
    assert "-> pip install --force-reinstall torch\n" in run.stdout
    assert "not checked, because the core packages cannot be imported" in run.stdout


def test_an_import_that_never_ends_is_given_up(world, monkeypatch):
    (world / "cupy.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(software, "IMPORT_SECONDS", 0.5)
    finding = software.cupy(software.import_apart(("cupy",)), [])
    assert line(finding).startswith("needs attention: the import timed out after 0.5 s")
    assert finding.remedy == 'time python -c "import cupy"'


def test_a_program_that_never_ends_takes_its_children_with_it(tmp_path):
    with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"):
        processes.run(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"], 0.5)
    child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    while child.exists() and child.read_text().split()[2] != "Z":  # a signal may take a while to arrive
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_missing_and_old_packages(monkeypatch, tmp_path):
    current = software.package("Snakemake", {"version": "9.27.1"})
    assert software.on_the_path(current) == current == Finding.ok("9.27.1")
    missing = software.package("Snakemake", {"missing": "snakemake"}, "the workflow")
    text = "needs attention: no snakemake, which the workflow needs"
    assert line(missing) == f"{text} -> pip install pairflow"
    plugin = software.package("executor plugin", {"missing": "x"})
    assert line(plugin).startswith("missing (optional): not installed; for jobs on SLURM -> ")
    monkeypatch.setattr(software, "_bounds", lambda name: ">=9.10")
    old = line(software.package("Snakemake", {"version": "8.1"}))
    assert old == "needs attention: 8.1, expected >=9.10 -> pip install 'snakemake>=9.10'"
    monkeypatch.setenv("PATH", str(tmp_path))
    text = "needs attention: 9.27.1, but there is no command snakemake on the PATH"
    activate = shlex.quote(f"{sys.prefix}/bin/activate")
    assert line(software.on_the_path(current)) == f"{text} -> source {activate}"


@pytest.mark.parametrize("variable", ["TMPDIR", "XDG_CACHE_HOME"])
def test_a_folder_that_snakemake_cannot_write_to_is_named(folder, monkeypatch, variable):
    assert line(hardware.scratch()) == "ok: writable"
    monkeypatch.setenv(variable, "/proc/none")
    advice = f"mkdir -p $PWD/{variable.lower()} && export {variable}=$PWD/{variable.lower()}"
    assert line(hardware.scratch()) == (
        f"needs attention: {variable} /proc/none cannot be written to: No such file or directory -> {advice}"
    )


def test_what_is_imported_says_its_version():
    assert imports.main("absent_of_all") == {"missing": "absent_of_all"}
    assert imports.main("yaml")["version"]
    assert imports.main("click.testing") == {"version": None}  # its distribution is then asked


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (None, "missing (optional): no nvidia-smi; no NVIDIA GPU here: every step runs on the CPU"),
        ("echo 'H200, 580.1, 143771 MiB'", "ok: H200, 580.1, 143771 MiB"),
        ("echo no driver >&2; exit 9", "needs attention: nvidia-smi fails: no driver"),
        ("sleep 600", "needs attention: nvidia-smi: no answer within 0.5 s"),
    ],
)
def test_the_driver(tmp_path, monkeypatch, script, text):
    monkeypatch.setattr(software, "DRIVER_SECONDS", 0.5 if script == "sleep 600" else 60.0)
    if script is not None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    elif shutil.which("nvidia-smi"):
        pytest.skip("there is a driver here")
    finding, gpus = software.driver()
    assert line(finding).partition(" -> ")[0] == text
    assert gpus == (["H200"] if finding.condition is Condition.OK else [])


BUILT = {"version": "2.15", "cuda": "13.2", "devices": []}
LACKING = {"version": "99", "lacks": "needs a CUDA device"}


@pytest.mark.parametrize(
    ("look", "facts", "gpus", "text"),
    [
        ("cuda", BUILT, [], "missing (optional): torch is built for CUDA 13.2; no NVIDIA GPU here"),
        ("cuda", BUILT, ["H200"], "needs attention: torch is built for CUDA 13.2, but finds no GPU"),
        ("cuda", BUILT | {"cuda": None}, ["H200"], "needs attention: torch is built without CUDA, and there"),
        ("cuda", BUILT | {"devices": ["H200"]}, ["H200"], "ok: 13.2 on H200"),
        ("cuda", {"error": "x"}, [], "missing (optional): not checked, because torch cannot be imported"),
        ("cupy", LACKING, [], "missing (optional): 99, but needs a CUDA device"),
        ("cupy", LACKING, ["H200"], "needs attention: 99, but needs a CUDA device"),
    ],
)
def test_a_gpu_that_is_not_used_needs_attention(look, facts, gpus, text):
    assert line(getattr(software, look)(facts, gpus)).startswith(text)


def test_results_and_memory(tmp_path, monkeypatch):
    results = tmp_path / "results"
    assert hardware.results(tmp_path).condition is Condition.OK
    assert not results.exists()
    results.symlink_to("/proc")  # where nobody can make a file, not even root
    assert line(hardware.results(tmp_path)).startswith(f"needs attention: {results} cannot be written to: ")
    results.unlink()
    results.write_text("")
    assert hardware.results(tmp_path).text == f"{results} is a file"
    results.unlink()
    monkeypatch.setattr(hardware, "LEAST_DISK", 2**80)
    full = line(hardware.results(tmp_path))
    assert full.startswith("needs attention: ")
    assert full.endswith(f" -> df -h {tmp_path}")
    monkeypatch.setattr(hardware, "_limit", lambda: 2**30)
    assert line(hardware.memory()).startswith("needs attention: 1.0 GB, limited from this machine's ")


def offline(name):
    return (MOLECULES | IMAGES)[name].status(offline=True)


def test_a_cached_table_is_checked(folder):
    cached = MOLECULES["qm9"].file.cached_copy
    cached.parent.mkdir(parents=True)
    cached.write_text("name,smiles\n" + "1,C\n" * 7)
    assert offline("qm9") == Finding.attention(f"{cached}: 7 rows, expected 133,885", f"rm -r {cached}")
    cached.write_bytes(b"<html>")
    assert offline("qm9").text == f"{cached}: no column 'smiles'; found '<html>'"
    cached.write_text("smiles\n" + "C\n" * 133_885)
    assert offline("qm9") == Finding.ok(str(cached))
    cached = MOLECULES["zinc250k"].file.cached_copy
    cached.write_text("smiles\n")
    assert offline("zinc250k").text == f"{cached}: not the published file, by its checksum"


def test_a_broken_local_copy_is_named(folder, monkeypatch):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder))
    (folder / "qm9.csv.gz").write_bytes(b"\x1f\x8b\x08 cut off")
    assert line(offline("qm9")).startswith(f"needs attention: {folder}/qm9.csv.gz: not a readable CSV file: ")
    (folder / "mnist").mkdir()
    missing = f"{folder}/mnist/train-images-idx3-ubyte: no such file, gzipped or not"
    assert offline("mnist_binary").text == missing
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
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, address)
        finding = MOLECULES["qm9"].status()
    assert line(finding).startswith("needs attention: cannot be downloaded: ProxyError: ")
    assert finding.remedy == "export PAIRFLOW_DATA_DIR=<a folder with qm9.csv.gz>"


def test_a_publisher_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(download, "ANSWER_SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        finding = download.downloadable([url], "x", offline=False)
    assert line(finding).startswith("needs attention: cannot be downloaded: ")


def test_images_that_torchvision_keeps(folder, monkeypatch):
    cached = download.cache() / "cifar-10-batches-py"
    assert offline("cifar10") == Finding.optional("to be downloaded; the network was not asked")
    missing = line(IMAGES["cifar10"].status(offline=True, torchvision=False))
    assert missing.startswith("needs attention: CIFAR10: torchvision reads it, and cannot be imported")
    cached.mkdir(parents=True)
    finding = offline("cifar10")
    assert finding.text.startswith(f"{cached}: RuntimeError: Dataset not found or corrupted")
    assert finding.remedy == f"rm -r {cached}"
    monkeypatch.setattr(image_sets, "read_torchvision", lambda *_, download: [])
    assert offline("cifar10") == Finding.ok(str(cached))


def test_own_files_and_folders(folder):
    smiles = kind_of(Molecules(source="my.smi", length=8)).source(
        Molecules(source="my.smi", length=8), folder
    )
    assert smiles.status().text == f"{folder}/my.smi: no such file"
    (folder / "my.smi").touch()
    assert smiles.status().text == f"{folder}/my.smi: empty"
    (folder / "my.smi").write_text("C\n")
    assert smiles.status() == Finding.ok(f"{folder}/my.smi")
    pictures = kind_of(Images(source="image_folder", folder="pictures")).source(
        Images(source="image_folder", folder="pictures"), folder
    )
    assert pictures.status().text == f"{folder}/pictures: no such folder"
    (folder / "pictures").mkdir()
    assert pictures.status().condition is Condition.OK


def test_a_missing_or_broken_configuration(tmp_path, monkeypatch):
    facts = {name: {"version": "1"} for name in software.PACKAGES} | {"RDKit": {"missing": "rdkit"}}
    monkeypatch.setattr(software, "imported", lambda: facts)
    path = tmp_path / "workflow_config.yaml"
    found = dict(findings(path, offline=True))
    advice = "no such file; run the command in the workflow's folder, or name the file with --config"
    assert line(found["configuration"]) == f"needs attention: {path}: {advice}"
    assert found["RDKit"].condition is Condition.OPTIONAL  # only an experiment on molecules needs it
    path.write_text("experiments: {")
    assert dict(findings(path, offline=True))["configuration"].text.startswith(f"{path}: not YAML: ")
    shutil.copy(SHIPPED, path)
    rdkit = dict(findings(path, offline=True))["RDKit"]
    assert rdkit.text == "no rdkit, which an experiment on molecules needs"
