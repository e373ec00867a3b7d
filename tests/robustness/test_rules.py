"""The rules are stopped half-way, run twice at once, and given names that are attacks."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from pairflow.artifacts import read_table

REPOSITORY = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.workflow
REPORT = "results/mini/report.html"


def start(folder: Path, errors: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "snakemake", "--snakefile", REPOSITORY / "Snakefile", "--cores", "2"]
    with errors.open("w") as file:
        return subprocess.Popen(
            [*map(str, command), "--", REPORT],
            cwd=folder,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PAIRFLOW_DATA_DIR": ""},
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def knocked(place, tmp_path_factory, snakemake):
    """A workflow that was stopped during its training, and a second one that was started meanwhile."""
    made, words = place("rules"), tmp_path_factory.mktemp("words") / "first"
    text = yaml.safe_dump({"experiments": {"mini": made.experiment.model_dump(mode="json")}})
    (made.folder / "workflow_config.yaml").write_text(text, encoding="utf-8")
    snakemake(made.folder, "--until", "pair", "--", REPORT)
    first = start(made.folder, words)
    training = made.root / "logs/seed0/train-pairflow.log"
    while not training.exists():
        assert first.poll() is None, words.read_text()
        time.sleep(0.02)
    second = snakemake(made.folder, "--", REPORT)
    assert second.returncode != 0
    os.killpg(first.pid, signal.SIGINT)  # Ctrl-C: at a SIGTERM Snakemake 9 may wait for a lock of its own
    assert first.wait(timeout=120) != 0
    assert not (made.folder / REPORT).exists()
    again = snakemake(made.folder, "--", REPORT)
    assert again.returncode == 0, again.stderr
    made.second = second.stdout + second.stderr
    return made


def test_two_workflows_in_one_folder_do_not_meet(knocked):
    assert "Directory cannot be locked" in knocked.second


@pytest.mark.promise("signal")
def test_a_stopped_workflow_ends_in_the_bytes_of_the_steps_by_hand(knocked, calm):
    for step in calm.chain:
        knocked.require_same(step, calm)
    assert (knocked.root / "metrics.parquet").read_bytes() == (calm.root / "metrics.parquet").read_bytes()
    assert not list(knocked.root.rglob("resume"))
    assert not list(knocked.root.rglob("*.partial"))


@pytest.mark.promise("code")
def test_no_name_has_reached_a_shell(knocked):
    assert not list(knocked.folder.parent.rglob("pwned"))
    made = {path.name for path in knocked.folder.iterdir() if not path.name.startswith(".")}
    assert made == {"results", "workflow_config.yaml"}


@pytest.mark.promise("code")
def test_no_name_has_reached_the_page_as_markup(knocked):
    page = (knocked.folder / REPORT).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_rejected_rows_stand_as_they_are(knocked):
    table, _ = read_table(knocked.root / "data/rejected.parquet", "rejected rows")
    assert {"$(touch", "`touch", "';", "../../C"} <= {text.split()[0] for text in table["text"].to_pylist()}
