"""`pairflow init` copies the workflow of this clone; tests/test_packaging.py does the same from a wheel."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from deadline import within

from pairflow.cli import main

REPOSITORY = Path(__file__).parent.parent.parent


def init(folder):
    return CliRunner().invoke(main, ["init", str(folder)])


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_holds_the_files_of_the_clone():
    finished = init("my project")
    assert finished.exit_code == 0, finished.output
    assert "\n  cd 'my project'\n  pairflow run demo\n" in finished.output
    copies = {path.relative_to("my project") for path in Path("my project").rglob("*") if path.is_file()}
    assert Path("rules/captions/report.rst") in copies
    assert Path("profiles/default/config.yaml") in copies
    assert Path("pyproject.toml") not in copies
    assert all(Path("my project", path).read_bytes() == (REPOSITORY / path).read_bytes() for path in copies)


def test_the_root_of_the_disk_is_refused_at_its_first_file(refused):
    with within(20):
        refused(init("/"), "init", "/: expected a new or an empty folder, found ")


@pytest.mark.parametrize("occupied", ["project/.hidden", "project"])
def test_a_folder_with_files_and_a_file_are_refused(occupied, refused):
    Path(occupied).parent.mkdir(parents=True, exist_ok=True)
    Path(occupied).write_text("mine")
    found = "a file" if occupied == "project" else ".hidden in it"
    refused(init("project"), "init", f"project: expected a new or an empty folder, found {found}")
    assert not Path("project/Snakefile").exists()
