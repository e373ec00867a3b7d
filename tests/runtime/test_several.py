"""Several runs of a step in one process make what each makes by itself; the first failure ends it."""

from pathlib import Path

import numpy as np
import pytest

from pairflow.runtime import several

PAIR = ["pairflow.steps.pair", "--tokens=rows.npy", "--vocabulary-size=5", "--quiet"]


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).integers(0, 5, (20, 6)))


def test_each_run_has_its_own_arguments_and_those_of_all(step):
    several.main([*PAIR, "--", "--seed=1", "--out=a.parquet", "--", "--seed=2", "--out=b.parquet"])
    for seed, name in ((1, "a"), (2, "b")):
        options = {"tokens": "rows.npy", "vocabulary_size": 5, "seed": seed, "out": f"only_{name}.parquet"}
        assert step("pair", **options, quiet=True).exit_code == 0
        assert Path(f"only_{name}.parquet").read_bytes() == Path(f"{name}.parquet").read_bytes()


def test_the_first_failure_ends_it_with_its_exit_code(capsys):
    with pytest.raises(SystemExit) as end:
        several.main([*PAIR, "--", "--out=a.parquet", "--", "--steps=0", "--out=b.parquet", "--", "--out=c"])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("pairflow pair: error: settings: steps: ")
    assert sorted(path.name for path in Path().glob("[abc]*")) == ["a.parquet", "a.parquet.provenance.json"]
