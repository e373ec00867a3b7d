"""`make setup` compiles the pairing engine; without that the first pairing does, and says so."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from pairflow.pairing.cpu import engine as cpu
from pairflow.pairing.pair import pair

COUNTED = """
import gc, sys
import numpy as np
from numba.core.registry import CPUDispatcher
from pairflow.pairing import compile_ahead
from pairflow.pairing.pair import compile_for, pair

count = lambda: sum(len(each.signatures) for each in gc.get_objects() if isinstance(each, CPUDispatcher))
if sys.argv[1] == "ahead":
    compile_ahead.main()
for symbols in (2, 40, 256, 300, 65_536):
    tokens = np.random.default_rng(0).integers(0, symbols, (400, 100)).astype(np.min_scalar_type(symbols - 1))
    if sys.argv[1] == "for":
        compile_for(tokens, vocabulary_size=symbols, backend="cpu")
    before = count()
    pair(tokens, vocabulary_size=symbols, steps=3, subsets=2, backend="cpu", threads=2, progress=False)
    print(before > 0, count() - before)
"""


@pytest.mark.parametrize("when", ["ahead", "for"])
def test_no_pairing_compiles_after_the_setup_or_after_compile_for(when):
    done = subprocess.run([sys.executable, "-c", COUNTED, when], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True 0\n" * 5, "")


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
