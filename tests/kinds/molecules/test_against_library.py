"""`pairflow metrics`: molecules of any program beside a library, without a model."""

import pandas as pd
import pytest

TRAINED = [f"{'C' * n}c1ccccc1" for n in range(1, 8)] + [f"{'C' * n}O" for n in range(1, 8)]


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "library.csv"
    path.write_text("id,SMILES\n" + "".join(f"{number},{text}\n" for number, text in enumerate(TRAINED)))
    return path


def test_molecules_are_counted_and_listed(step, library, tmp_path):
    """A known molecule in another spelling, a new one twice, one with a new ring, and no SMILES."""
    mine, out = tmp_path / "mine.smi", tmp_path / "mine.csv"
    mine.write_text("OCC ethanol\nCCCCCCCCO new\nCCCCCCCCO again\nCC1CCC1 ring\nC(( broken\n")
    done = step("metrics", mine, reference=library, out=out, quiet=True)
    assert done.exit_code == 0, done.stderr
    lines = {line[:36].strip(): " ".join(line[36:].split()) for line in done.stdout.splitlines()[1:]}
    assert done.stdout.startswith(f"{mine} compared with {library} (14 molecules)\n")
    expected = {"rows": "5", "valid": "4 80.0%", "unique": "3 60.0%", "novel": "2 40.0%"}
    expected |= {"with usual rings, too": "1 20.0%", "syntax": "1 20.0%"}
    assert {name: lines[name] for name in expected} == expected
    table = pd.read_csv(out, dtype=str, keep_default_na=False).set_index("name")
    assert table["valid"].tolist() == ["yes"] * 4 + ["no"]
    assert table.loc["ethanol", ["smiles", "known"]].tolist() == ["CCO", "yes"]
    assert table.loc["ring", ["known", "plausible", "new_rings"]].tolist() == ["no", "no", "1"]
    assert table.loc["broken", ["smiles", "known", "qed"]].tolist() == ["C((", "", ""]
    nearest = ["nearest", "nearest_name", "similarity"]
    assert table.loc[["ethanol", "broken"], nearest].values.tolist() == [["CCO", "8", "1.000"], [""] * 3]
    assert step("metrics", mine, reference=library, out=out.with_suffix(".html"), quiet=True).exit_code == 0
    assert '"name":"similarity"' in out.with_suffix(".html").read_text()


def test_a_library_without_molecules_is_a_line(step, library, tmp_path):
    (tmp_path / "empty.smi").write_text("((\n")
    done = step("metrics", library, reference=tmp_path / "empty.smi", quiet=True)
    line = f"pairflow metrics: error: {tmp_path}/empty.smi: holds no molecule that RDKit reads\n"
    assert (done.exit_code, done.stderr) == (2, line)
