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

from pairflow.checkup import data, hardware, imports, processes, software
from pairflow.checkup.line import Line, State, guarded
from pairflow.checkup.lines import lines
from pairflow.cli import main
from pairflow.data import sources

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = REPOSITORY / "workflow_config.yaml"
NOTHING = data.Look(Path(), offline=True, torchvision={})
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


def test_whatever_imports_do_is_a_line(tmp_path):
    """Python and pairflow's own command start; each package fails in a way of its own."""
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
    assert "NumPy and the like     needs attention     RuntimeError: made to fail in two lines" in run.stdout
    assert "torch                  needs attention     importing it ends Python with code 7" in run.stdout
    assert "torchvision            needs attention     SystemExit: gone" in run.stdout
    assert "Snakemake              needs attention     SyntaxError:" in run.stdout
    assert "RDKit                  needs attention     No module named 'absent_of_rdkit'" in run.stdout
    assert "executor plugin        needs attention     KeyboardInterrupt:" in run.stdout
    assert "CuPy                   needs attention     OSError: libcuda" in run.stdout
    assert "-> pip install --force-reinstall torch\n" in run.stdout
    assert "not looked at, as NumPy and the like do not import" in run.stdout


def test_an_import_that_never_ends_is_given_up(tmp_path, monkeypatch):
    world = broken_world(tmp_path, cupy="import time; time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", world["PYTHONPATH"])
    monkeypatch.setattr(software, "IMPORT_SECONDS", 0.5)
    facts = software.imported([software.CUPY])["CuPy"]
    line = software.cupy(facts, [])
    assert line.state is State.ATTENTION
    assert line.found.startswith("importing it gives no answer within 0.5 s")
    assert line.remedy == 'time python -c "import cupy"'


def test_a_program_that_never_ends_takes_its_children_with_it(tmp_path):
    with pytest.raises(processes.TooSlow, match=r"no answer within 0\.5 s"):
        processes.run(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"], 0.5)
    child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    while child.exists() and child.read_text().split()[2] != "Z":  # a signal may take a while to arrive
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_snakemake_has_to_be_on_the_path(monkeypatch, tmp_path):
    assert software.snakemake({"version": "9.27.1"}) == Line("Snakemake", State.OK, "9.27.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    line = software.snakemake({"version": "9.27.1"})
    assert line.state is State.ATTENTION
    assert line.found == "9.27.1, but there is no command snakemake on the PATH"
    assert line.remedy == f"source {sys.prefix}/bin/activate"


def test_missing_and_old_packages(monkeypatch):
    monkeypatch.setattr(software, "_bounds", lambda name: ">=9.10")
    line = software.package(software.SNAKEMAKE, {"version": "8.1"})
    assert (line.state, line.found) == (State.ATTENTION, "8.1, expected >=9.10")
    assert line.remedy == "pip install 'snakemake>=9.10'"
    line = software.package(software.SNAKEMAKE, {"missing": "snakemake"})
    assert (line.state, line.found) == (State.ATTENTION, "no snakemake, which the workflow needs")
    assert line.remedy == 'pip install "pairflow[workflow]"'
    line = software.package(software.PLUGIN, {"missing": "x"})
    assert (line.state, line.found) == (State.OPTIONAL, "not installed; for jobs on SLURM")
    assert software.package(software.RDKIT, {"missing": "rdkit"}).state is State.OPTIONAL
    assert software.package(software.RDKIT, {"missing": "rdkit"}, "an experiment").state is State.ATTENTION


def test_what_is_imported_says_its_version():
    import click

    assert imports.main("absent_of_all") == {"missing": "absent_of_all"}
    assert imports.main("yaml")["version"]
    assert imports.main("click.testing") == {"version": None}
    assert click  # the distribution's own version is asked for then


@pytest.mark.parametrize(
    ("script", "state", "found"),
    [
        (None, State.OPTIONAL, "no nvidia-smi; no NVIDIA GPU here: every step runs on the CPU"),
        ("echo 'H200, 580.1, 143771 MiB'", State.OK, "H200, 580.1, 143771 MiB"),
        ("echo no driver >&2; exit 9", State.ATTENTION, "nvidia-smi fails: no driver"),
        ("sleep 600", State.ATTENTION, "nvidia-smi: no answer within 0.5 s"),
    ],
)
def test_the_driver(tmp_path, monkeypatch, script, state, found):
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
    line, gpus = software.driver()
    assert (line.state, line.found) == (state, found)
    assert gpus == (["H200"] if state is State.OK else [])


def test_a_gpu_that_torch_does_not_use_needs_attention():
    built = {"version": "2.15", "cuda": "13.2", "devices": []}
    assert software.cuda(built, []).state is State.OPTIONAL
    line = software.cuda(built, ["H200"])
    assert line.state is State.ATTENTION
    assert line.found.startswith("torch is built for CUDA 13.2, and sees none of the driver's GPUs")
    line = software.cuda({**built, "cuda": None}, ["H200"])
    assert (line.found, line.remedy) == (
        "torch is built without CUDA, and there is a GPU",
        "pip install --force-reinstall torch",
    )
    assert software.cuda({**built, "devices": ["H200"]}, ["H200"]).found == "13.2 on H200"
    assert software.cuda({"error": "x"}, []).state is State.OPTIONAL
    facts = {"version": "99", "lacks": "needs a CUDA device, and none is visible"}
    assert software.cupy(facts, []).state is State.OPTIONAL
    assert software.cupy(facts, ["H200"]).state is State.ATTENTION


def test_results_that_cannot_be_written(tmp_path):
    assert hardware.results(tmp_path).state is State.OK
    assert not (tmp_path / "results").exists()
    (tmp_path / "results").symlink_to("/proc")  # where nobody can make a file, not even root
    line = hardware.results(tmp_path)
    assert line.state is State.ATTENTION
    assert line.found.startswith(f"{tmp_path}/results cannot be written to: ")
    (tmp_path / "results").unlink()
    (tmp_path / "results").write_text("")
    assert hardware.results(tmp_path).found == f"{tmp_path}/results is a file"


def test_a_full_disk_and_little_memory_need_attention(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "LEAST_DISK", 2**80)
    line = hardware.results(tmp_path)
    assert (line.state, line.remedy) == (State.ATTENTION, f"df -h {tmp_path}")
    monkeypatch.setattr(hardware, "_limit", lambda: 2**30)
    line = hardware.memory()
    assert line.state is State.ATTENTION
    assert line.found.startswith("1.0 GB, by a limit on this machine's ")


def test_a_cached_table_is_checked(folder):
    cached = sources.cached_copy(sources.SOURCES["qm9"].table)
    cached.parent.mkdir(parents=True)
    cached.write_text("name,smiles\n" + "1,C\n" * 7)
    line = data.line("qm9", None, NOTHING)
    assert (line.state, line.found) == (State.ATTENTION, f"{cached}: 7 rows, expected 133,885")
    assert line.remedy == f"rm -r {cached}"
    cached.write_bytes(b"<html>")
    assert data.line("qm9", None, NOTHING).found == f"{cached}: no column 'smiles'"
    cached.write_text("smiles\n" + "C\n" * 133_885)
    assert data.line("qm9", None, NOTHING) == Line("data: qm9", State.OK, str(cached))
    cached = sources.cached_copy(sources.SOURCES["zinc250k"].table)
    cached.write_text("smiles\n")
    found = data.line("zinc250k", None, NOTHING).found
    assert found == f"{cached}: not the published file, by its checksum"


def test_a_broken_local_copy_is_named(folder, monkeypatch):
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder))
    (folder / "qm9.csv.gz").write_bytes(b"\x1f\x8b\x08 cut off")
    line = data.line("qm9", None, NOTHING)
    assert line.state is State.ATTENTION
    assert line.found.startswith(f"{folder}/qm9.csv.gz: not readable: ")
    (folder / "mnist").mkdir()
    line = data.line("mnist_binary", None, NOTHING)
    assert line.found == f"{folder}/mnist/train-images-idx3-ubyte: no such file, gzipped or not"
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder / "absent"))
    line = guarded("data: qm9", lambda: data.line("qm9", None, NOTHING))
    assert line.found == f"InputError: PAIRFLOW_DATA_DIR: expected a folder, found none at {folder}/absent"


def test_real_data_in_the_folder_are_whole(data_dir):
    for source in ("qm9", "zinc250k", "mnist_binary"):
        assert data.line(source, None, NOTHING).state is State.OK


def test_an_unreachable_publisher(folder, monkeypatch):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", address)
        monkeypatch.setenv("https_proxy", address)
        line = data.line("qm9", None, data.Look(folder, offline=False, torchvision={}))
    assert line.state is State.ATTENTION
    assert line.found.startswith("cannot be downloaded: ProxyError: ")
    assert line.remedy == "export PAIRFLOW_DATA_DIR=<a folder with qm9.csv.gz>"


def test_a_publisher_that_never_answers_is_given_up(folder, monkeypatch):
    monkeypatch.setattr(data, "NETWORK_SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        facts = {
            "folder": "x",
            "addresses": [f"http://127.0.0.1:{silent.getsockname()[1]}/a"],
            "broken": None,
        }
        look = data.Look(folder, offline=False, torchvision={"data": {"cifar10": facts}})
        line = data.line("cifar10", None, look)
    assert line.state is State.ATTENTION
    assert line.found.startswith("cannot be downloaded: ")


def test_images_that_torchvision_keeps(folder):
    facts = {"folder": "/cache/x", "addresses": ["http://localhost/a"], "broken": ""}

    def line(facts):
        return data.line("cifar10", None, data.Look(folder, True, {"data": {"cifar10": facts}}))

    assert line(facts) == Line("data: cifar10", State.OK, "/cache/x")
    found = line({**facts, "broken": "RuntimeError: corrupted"})
    assert (found.state, found.found) == (State.ATTENTION, "/cache/x: RuntimeError: corrupted")
    assert found.remedy == "rm -r /cache/x"
    assert line({**facts, "broken": None}).state is State.OPTIONAL
    assert (
        data.line("cifar10", None, NOTHING).found == "torchvision would fetch it, and is not there or broken"
    )


def test_own_files_and_folders(folder):
    look = data.Look(folder, True, {})
    assert data.line("my.smi", None, look).found == f"{folder}/my.smi: No such file or directory"
    (folder / "my.smi").touch()
    assert data.line("my.smi", None, look).found == f"{folder}/my.smi: empty"
    (folder / "my.smi").write_text("C\n")
    assert data.line("my.smi", None, look) == Line("data: my.smi", State.OK, f"{folder}/my.smi")
    assert data.line("image_folder", "pictures", look).found == f"{folder}/pictures: no such folder"
    (folder / "pictures").mkdir()
    assert data.line("image_folder", "pictures", look).state is State.OK


def test_a_configuration_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(
        software, "imported", lambda: {each.label: {"version": "1"} for each in software.PACKAGES}
    )
    path = tmp_path / "workflow_config.yaml"
    texts = {line.name: line for line in lines(path, offline=True)}
    assert texts["configuration"].state is State.ATTENTION
    assert texts["configuration"].found.endswith(
        "no such file; go to the workflow's folder, or name it with --config"
    )
    path.write_text("experiments: {")
    texts = {line.name: line for line in lines(path, offline=True)}
    assert texts["configuration"].found.startswith(f"{path}: not YAML: ")


def test_states_are_told_apart_without_colours():
    assert [str(state) for state in State] == ["ok", "missing (optional)", "needs attention"]
