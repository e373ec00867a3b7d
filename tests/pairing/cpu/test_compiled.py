"""The cache of machine code may be damaged, full or missing: a function is compiled and gives its result."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from pairflow.pairing.cpu.compiled import compiled

@compiled
def double(number):
    return 2 * number

print(double(21), sum(double.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    """Run the function in a process with a cache in `folder`; returns its result and hits of the cache."""
    script = tmp_path / "kernel.py"
    script.write_text(CODE)

    def run(folder: Path, **options) -> str:
        options |= {"env": {**os.environ, "NUMBA_CACHE_DIR": str(folder)}}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize(("ending", "content"), [("nbi", b"0123 garbled"), ("nbc", b"")])
def test_a_damaged_file_is_written_again(run, tmp_path, ending, content):
    assert [run(tmp_path), run(tmp_path)] == ["42 0\n", "42 1\n"]
    [file] = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(content)
    assert [run(tmp_path), run(tmp_path)] == ["42 0\n", "42 1\n"]


@pytest.mark.parametrize("place", ["/proc/none", "/dev/full"])
def test_no_folder_can_be_written(run, place):
    assert run(Path(place)) == "42 0\n"


def test_the_disk_takes_nothing_more(run, tmp_path):
    def refuse():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    assert [run(tmp_path, preexec_fn=refuse), run(tmp_path)] == ["42 0\n", "42 0\n"]
