"""`make setup` compiles the pairing engine; without that the first pairing does, and says so."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.pair import compile_for, pair

AHEAD = """
import gc
import numpy as np
from numba.core.registry import CPUDispatcher
from pairflow.pairing import compile_ahead
from pairflow.pairing.pair import pair

count = lambda: sum(len(each.signatures) for each in gc.get_objects() if isinstance(each, CPUDispatcher))
compile_ahead.main()
before = count()
for symbols in (2, 256, 257, 65_536):
    tokens = np.random.default_rng(0).integers(0, symbols, (40, 10))
    pair(tokens, vocabulary_size=symbols, steps=3, backend="cpu", progress=False)
print(before > 0, count() - before)
"""


def test_after_the_setup_no_vocabulary_needs_a_compilation():
    done = subprocess.run([sys.executable, "-c", AHEAD], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True 0\n", "")


@pytest.fixture
def compiling(monkeypatch):
    """An engine that compiles something in the first call."""
    add = numba.njit(lambda a, b: a + b)
    monkeypatch.setattr(cpu, "pair_rows", lambda data, queries, *rest, **options: add(queries, queries))


@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("progress", [True, False])
def test_a_pairing_that_compiles_says_so_once(capsys, progress):
    for _ in range(2):
        pair(np.eye(3, dtype=int), vocabulary_size=2, backend="cpu", progress=progress)
    notice = "Compiling the pairing engine, which takes about 20 s, once per installation\n"
    assert capsys.readouterr().err == progress * notice


@pytest.mark.usefixtures("compiling")
def test_a_step_that_compiles_says_so(capsys):
    compile_for(np.eye(3, dtype=int), vocabulary_size=2, backend="cpu")
    assert capsys.readouterr().err.startswith("Compiling the pairing engine, which takes about 20 s")
