"""`pairflow doctor`: on this machine, and in broken worlds that are made for real."""

import os
import re
import shutil
import socket
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pairflow import checkup
from pairflow.checkup import CORE, findings, guarded
from pairflow.cli import main
from pairflow.data import download
from pairflow.data.status import Condition, Finding
from pairflow.kinds import kind_of
from pairflow.kinds.images.data_sets import DATA_SETS as IMAGES
from pairflow.kinds.images.settings import Images
from pairflow.kinds.molecules.data.data_sets import DATA_SETS as MOLECULES
from pairflow.kinds.molecules.settings import Molecules
from pairflow.runtime import memory

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = REPOSITORY / "workflow_config.yaml"
BROKEN = {  # the name of a package on the screen -> its module, the content, what is wrong with it
    "core packages": ("numpy", "raise OSError('in\\ntwo lines')", "the import ends with code 1 two lines"),
    "torch": ("torch", "import os; os._exit(7)", "the import ends with code 7"),
    "torchvision": ("torchvision", "raise SystemExit('gone')", "the import ends with code 1 gone"),
    "Snakemake": ("snakemake", "def (", "the import ends with code 1 SyntaxError:"),
    "RDKit": ("rdkit", "import absent_of_rdkit", "ModuleNotFoundError: No module named 'absent_of_rdkit'"),
    "CuPy": ("cupy", "print('{}'); raise OSError('libcuda')", "the import ends with code 1 OSError: libcuda"),
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
    monkeypatch.setattr(checkup, "IMPORT_SECONDS", 300.0)
    run = CliRunner().invoke(main, ["doctor", "--offline"])
    assert run.exit_code == 0, run.output
    found = {line[2:25].strip(): line for line in run.output.splitlines() if line.startswith("  ")}
    for name in ("Python", "torch", "torchvision", "RDKit", "Snakemake", "results folder", "memory", "cores"):
        assert " ok " in found[name], found[name]
    others = found.pop("other data sets")
    assert "missing (optional)  found, or pairflow downloads them: small_molecules, " in others
    assert re.search(r"; not found: .*qm9, ", others)
    assert not [name for name in found if name.startswith("data")]
    assert "\x1b" not in run.output  # no colours where there is no terminal


def test_every_failure_of_an_import_is_a_line(world, pairflow_command):
    """Python and the command start; each package fails in its own way."""
    for module, content, _ in BROKEN.values():
        (world / f"{module}.py").write_text(content)
    run = pairflow_command("doctor", "--config", SHIPPED, "--offline")
    assert run.returncode == 1
    assert "Traceback" not in run.stdout + run.stderr
    for name, (_, _, text) in BROKEN.items():
        assert re.search(rf"^  {name:<23}needs attention     .*{text}", run.stdout, re.MULTILINE)
    assert "-> pip install --force-reinstall torch\n" in run.stdout
    assert "not checked, because the core packages cannot be imported" in run.stdout


def checked(name, needed=False, gpus=False):
    return line(checkup.check(checkup.PACKAGES[name], needed, gpus))


def test_an_import_that_never_ends_is_given_up(world, monkeypatch):
    (world / "cupy.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(checkup, "IMPORT_SECONDS", 0.5)
    found = checked("CuPy")
    assert found.startswith("needs attention: the import timed out after 0.5 s")
    assert found.endswith('-> time python -c "import cupy"')


def test_missing_old_and_unusable_packages(world, monkeypatch):
    absent = checkup.PACKAGES["SELFIES"]._replace(modules="absent_of_all")
    missing = (
        'absent_of_all is not installed; it is needed for molecules as SELFIES -> pip install "pairflow[mol'
    )
    assert line(checkup.check(absent, True, False)).startswith(f"needs attention: {missing}")
    assert line(checkup.check(absent, False, False)).startswith(f"missing (optional): {missing}")
    (world / "snakemake.py").write_text("__version__ = '8.1'")
    old = r"needs attention: 8\.1, expected >=9\S+ -> pip install 'snakemake>=9\S+'"
    assert re.fullmatch(old, checked("Snakemake"))
    (world / "cupy.py").write_text("__version__ = '99'")
    assert checked("CuPy") == "ok: 99"
    unusable = checked("CuPy", gpus=True)  # without NVRTC
    assert unusable.startswith("needs attention: the import ends with code 1 ModuleNotFoundError: No module")
    torch = "class cuda:\n    def init(): raise OSError('no driver')\n__version__ = '2.15'"
    (world / "torch.py").write_text(torch)
    assert checked("torch", True) == "ok: 2.15"
    assert "the import ends with code 1 OSError: no" in checked("torch", True, gpus=True)


def test_snakemake_is_a_command(monkeypatch, tmp_path):
    assert checkup.snakemake().condition is Condition.OK
    monkeypatch.setenv("PATH", str(tmp_path))
    assert line(checkup.snakemake()).endswith(f"on the PATH -> source {sys.prefix}/bin/activate")


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (None, "missing (optional): no NVIDIA GPU found (no nvidia-smi): every step runs on the CPU"),
        ("echo 'H200, 580.1, 143771 MiB'", "ok: H200, 580.1, 143771 MiB"),
        ("echo no driver >&2; exit 9", "needs attention: nvidia-smi fails: no driver"),
        ("sleep 600", "needs attention: nvidia-smi gives no answer within 0.5 s"),
    ],
)
def test_the_driver(tmp_path, monkeypatch, script, text):
    monkeypatch.setattr(checkup, "DRIVER_SECONDS", 0.5 if script == "sleep 600" else 60.0)
    if script is not None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    elif shutil.which("nvidia-smi"):
        pytest.skip("there is a driver here")
    finding, gpus = checkup.driver()
    assert line(finding).partition(" -> ")[0] == text
    assert gpus == (["H200"] if finding.condition is Condition.OK else [])


def test_folders_and_memory(tmp_path, monkeypatch):
    results = tmp_path / "results"
    assert checkup.writable(results, "").condition is Condition.OK
    assert not results.exists()
    results.symlink_to("/proc")  # where nobody can make a file, not even root
    text = f"needs attention: {results} cannot be written to: No such file or directory -> mkdir elsewhere"
    assert line(checkup.writable(results, "mkdir elsewhere")) == text
    results.unlink()
    monkeypatch.setattr(checkup, "LEAST_DISK", 2**80)
    full = line(checkup.writable(results, ""))
    assert full.startswith("needs attention: ")
    assert full.endswith(f" -> df -h {tmp_path}")
    monkeypatch.setattr(memory, "read_limits", lambda *files: [[2**30]])
    assert line(checkup.memory()).startswith("needs attention: 1.0 GB, ")


def offline(name):
    return (MOLECULES | IMAGES)[name].status(offline=True)


def test_copies_in_the_cache_and_in_the_folder(folder, monkeypatch):
    cached = MOLECULES["zinc250k"].file.cached_copy
    cached.parent.mkdir(parents=True)
    cached.write_text("smiles\n")
    wrong = Finding.attention(f"{cached}: not the published file, by its checksum", f"rm {cached}")
    assert offline("zinc250k") == wrong
    assert offline("qm9") == Finding.optional("pairflow downloads it; not checked, because of --offline")
    cached = download.cache() / "cifar-10-batches-py"
    cached.mkdir()
    assert offline("cifar10") == Finding.ok(str(cached))
    assert offline("ffhq64").remedy == "export PAIRFLOW_DATA_DIR=<a folder with ffhq64 or thumbnails128x128>"
    (folder / "mnist").mkdir()
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder))
    assert offline("mnist_binary") == Finding.ok(f"{folder}/mnist")
    monkeypatch.setenv("PAIRFLOW_DATA_DIR", str(folder / "absent"))
    finding = guarded(lambda: offline("qm9"))
    assert finding.text == f"InputError: PAIRFLOW_DATA_DIR: expected a folder, found none at {folder}/absent"


def test_an_unreachable_publisher(folder, monkeypatch):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, address)
        finding = MOLECULES["qm9"].status()
    assert line(finding).startswith("needs attention: cannot be downloaded: ProxyError: ")
    assert finding.remedy == "export PAIRFLOW_DATA_DIR=<a folder with qm9.csv.gz or qm9.csv>"


def test_own_files_and_folders(folder):
    def status(settings):
        return kind_of(settings).source(settings, folder).status()

    smiles = Molecules(source="my.smi", length=8)
    missing = Finding.attention(f"{folder}/my.smi: no such file, or it is empty", f"ls -l {folder}")
    assert status(smiles) == missing
    (folder / "my.smi").touch()
    assert status(smiles) == missing
    (folder / "my.smi").write_text("C\n")
    assert status(smiles) == Finding.ok(f"{folder}/my.smi")
    pictures = Images(source="image_folder", folder="pictures")
    assert status(pictures).text == f"{folder}/pictures: no such folder, or it is empty"
    (folder / "pictures").mkdir()
    assert status(pictures).condition is Condition.OK


def test_what_the_users_own_experiments_need_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr("pairflow.checkup.check", lambda *_: Finding.ok("x"))
    path = tmp_path / "workflow_config.yaml"
    shutil.copy(SHIPPED, path)
    (tmp_path / "experiments").mkdir()
    entry = yaml.safe_load(SHIPPED.read_text())["experiments"]["demo"]
    entry["data"] |= {"source": "my.smi"}
    (tmp_path / "experiments/mine.yaml").write_text(yaml.safe_dump({"experiments": {"mine": entry}}))
    other = yaml.safe_load(SHIPPED.read_text())["experiments"]["qm9"]
    (tmp_path / "experiments/two.yaml").write_text(yaml.safe_dump({"experiments": {"other": other}}))
    found = dict(findings(path, offline=True))
    names = [*found]
    assert names[:3] == ["Python", "RDKit", CORE]
    assert [name for name in names if "data" in name] == ["data: my.smi", "data: qm9", "other data sets"]
    assert found["data: qm9"].text.endswith(" (other, qm9)")
    assert "qm9" not in found["other data sets"].text


def test_data_sets_that_nobody_needs_are_no_warning(folder, monkeypatch):
    """Though their publishers do not answer."""
    monkeypatch.setattr("pairflow.checkup.check", lambda *_: Finding.ok("x"))
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    found = dict(findings(folder / "workflow_config.yaml"))
    assert found["other data sets"].condition is Condition.OPTIONAL
    assert found["other data sets"].remedy == "export PAIRFLOW_DATA_DIR=<a folder with them>"
    assert not [name for name in found if name.startswith("data: ")]


def test_names_with_line_ends_stay_on_their_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("pairflow.checkup.check", lambda *_: Finding.ok("x"))
    path = tmp_path / "a\nb" / "workflow_config.yaml"
    run = CliRunner().invoke(main, ["doctor", "--offline", "--config", str(path)])
    assert "a\\nb/workflow_config.yaml: no such file" in run.output
    assert not [line for line in run.output.splitlines() if line.startswith("b/")]


def test_a_missing_or_broken_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr("pairflow.checkup.check", lambda package, needed, gpus: Finding.ok(str(needed)))
    path = tmp_path / "workflow_config.yaml"
    found = dict(findings(path, offline=True))
    advice = "no such file; run the command in the workflow's folder, or name the file with --config"
    assert line(found["configuration"]) == f"needs attention: {path}: {advice}"
    assert found["RDKit"] == Finding.ok("False")  # only an experiment on molecules needs it
    path.write_text("experiments: {")
    assert dict(findings(path, offline=True))["configuration"].text.startswith(f"{path}: not YAML: ")
    shutil.copy(SHIPPED, path)
    assert dict(findings(path, offline=True))["RDKit"] == Finding.ok("True")
