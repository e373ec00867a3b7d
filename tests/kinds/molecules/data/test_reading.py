"""Molecules that several processes read are those that one reads, and take little memory."""

import tracemalloc
from itertools import count

import numpy as np

from pairflow.kinds.molecules.data import reading
from pairflow.kinds.molecules.data.library import Row
from pairflow.kinds.molecules.data.prepare import prepare
from pairflow.kinds.molecules.data.reading import ReadMolecules
from pairflow.kinds.molecules.data.survey import Survey
from pairflow.kinds.molecules.settings import Molecules

TEXTS = [f"{'C' * (k % 40)}{'OS'[k % 2]}{'N' * (k // 40)}" for k in range(1200)]
TEXTS += ["x", "", "SC", "[Zr+4]", "c1ccccc1", *TEXTS[:50], "C" * 90]
TEXTS += [f"{'C' * k}{ring}" for k in range(20) for ring in ("C1CC1", "c1ccsc1")]


def rows():
    return map(Row, count(1), TEXTS, (f"m{k}" for k in count()))


def settings(**values):
    common = {"length": 60, "drop_duplicates": True, "max_too_long_share": 0.1, "min_count": 2}
    return Molecules(source="x.smi", **{**common, **values})


def test_several_processes_read_what_one_reads(monkeypatch):
    """For `prepare` and for a survey."""
    monkeypatch.setattr(reading, "_CHUNK", 100)
    monkeypatch.setattr(reading, "_FEW", 2)
    rules = settings(split="scaffold")
    one, two = (prepare(rows(), rules, processes=number) for number in (1, 2))
    assert np.array_equal(one.train, two.train)
    assert np.array_equal(one.validation, two.validation)
    assert one.vocabulary == two.vocabulary
    assert one.smiles.equals(two.smiles)
    assert one.rejected.equals(two.rejected)
    reasons = one.rejected.set_index("row").reason
    assert reasons[1200] == "unparsable"
    assert reasons[1202] == "duplicate of row 1"
    assert reasons[1203] == "rare token [Zr+4] (fewer than 2 molecules)"
    assert reasons[1205] == "duplicate of row 0"
    assert reasons[1255] == "too long (90 tokens, limit 58)"
    assert list(one.rejected.row) == sorted(one.rejected.row)
    one, two = (Survey(rows(), settings(), processes=number) for number in (1, 2))
    for name in ("total", "duplicates", "features", "ions"):
        assert getattr(one, name) == getattr(two, name)
    assert one.lengths.tolist() == two.lengths.tolist()
    assert one.duplicates == 51


def test_a_molecule_takes_few_bytes():
    """5,000 molecules of 20 atoms: their SMILES, 20 tokens, three numbers and a hash."""
    texts = (f"C{'C' * (k % 7)}N{k % 10}CCOCC{k % 10}CCOCC({'O' * (k % 3)}C)CN" for k in range(5000))
    unlike = settings(drop_duplicates=False, min_count=1)
    tracemalloc.start()
    try:
        read = ReadMolecules(map(Row, count(1), texts), unlike, 60)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(read) == 5000
    assert kept / 5000 < 100  # what Arrow holds is not traced: 25 bytes
