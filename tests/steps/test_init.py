"""`pairflow init` copies the workflow of this clone; tests/test_packaging.py does the same from a wheel."""

from pathlib import Path

import pytest
from deadline import within

REPOSITORY = Path(__file__).parent.parent.parent


def test_a_project_holds_the_files_of_the_clone(done):
    finished = done("init", "my project")
    assert "\n  cd 'my project'\n  pairflow run demo\n" in finished.output
    copies = {path.relative_to("my project") for path in Path("my project").rglob("*") if path.is_file()}
    assert Path("rules/captions/report.rst") in copies
    assert Path("profiles/default/config.yaml") in copies
    assert Path("pyproject.toml") not in copies
    assert all(Path("my project", path).read_bytes() == (REPOSITORY / path).read_bytes() for path in copies)


def test_the_root_of_the_disk_is_refused_at_its_first_file(step, refused):
    with within(20):
        refused(step("init", "/"), "init", "/: expected a new or an empty folder, found ")


@pytest.mark.parametrize("occupied", ["project/.hidden", "project"])
def test_a_folder_with_files_and_a_file_are_refused(occupied, step, refused):
    Path(occupied).parent.mkdir(parents=True, exist_ok=True)
    Path(occupied).write_text("mine")
    found = "a file" if occupied == "project" else ".hidden in it"
    refused(step("init", "project"), "init", f"project: expected a new or an empty folder, found {found}")
    assert not Path("project/Snakefile").exists()
