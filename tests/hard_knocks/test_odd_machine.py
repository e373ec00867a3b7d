"""A machine unlike one's own: another user, no home, a strict umask, an old locale, odd folders."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
NOBODY = "nobody"


def may_run(user: str) -> bool:
    """Whether another user may run this Python with this package; only root can find out."""
    command = [sys.executable, "-c", "import pairflow"]
    try:
        run = subprocess.run(command, user=user, cwd="/", capture_output=True, check=False)
    except PermissionError:
        return False
    return run.returncode == 0


@pytest.fixture
def folder():
    """A folder that every user may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.workflow
def test_the_miniature_runs_without_a_home_under_a_strict_umask_and_an_old_locale(folder, miniature):
    """As `nobody`, if root runs the tests and `nobody` can read the package; else as the same user."""
    project, temporary = folder / "mein Büro & mehr", folder / "tmp"
    project.mkdir()
    temporary.mkdir()
    (project / "workflow_config.yaml").write_text(yaml.safe_dump({"experiments": {"mini": miniature()}}))
    other = os.getuid() == 0 and may_run(NOBODY)
    if other:
        for path in (project, temporary):
            os.chown(path, 65534, 65534)
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "LANG": "C",
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(temporary / "cache"),  # Snakemake needs one, or a home
    }
    command = [
        "-m",
        "pairflow.steps.run",
        "mini",
        "--cores",
        "2",
        "--",
        "--snakefile",
        REPOSITORY / "Snakefile",
    ]
    run = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment,
        umask=0o077,
        user=NOBODY if other else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "report: results/mini/report.html" in run.stdout
    made = [path for path in (project / "results").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
