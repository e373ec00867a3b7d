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

COMPILED_LATER = """
import gc, sys
import numpy as np
from numba.core.registry import CPUDispatcher
from pairflow.pairing.pair import compile_for, jumps_per_step, pair

symbols = int(sys.argv[1])
tokens = np.random.default_rng(0).integers(0, symbols, (400, 100)).astype(np.min_scalar_type(symbols - 1))
count = lambda: sum(len(each.signatures) for each in gc.get_objects() if isinstance(each, CPUDispatcher))
compile_for(tokens, vocabulary_size=symbols, backend="cpu")
before = count()
pair(tokens, vocabulary_size=symbols, steps=3, subsets=2, backend="cpu", threads=2, progress=False)
jumps_per_step(tokens, np.arange(9), vocabulary_size=symbols, steps=2)
print(before > 0, count() - before)
"""


@pytest.fixture
def run(tmp_path):
    """Run the function in a process with a cache in `folder`; returns its result and hits of the cache."""
    script = tmp_path / "kernel.py"
    script.write_text(CODE)

    def run(folder: Path, **options) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
        command = [sys.executable, str(script)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, **options
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"0123 garbled"])
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


@pytest.mark.parametrize("symbols", [2, 40, 300])
def test_a_pairing_compiles_nothing_after_compile_for(symbols):
    command = [sys.executable, "-c", COMPILED_LATER, str(symbols)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "True 0\n", done.stderr
