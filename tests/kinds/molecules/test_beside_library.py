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
    lines = {line[:36].strip(): line[36:].split() for line in done.stdout.splitlines()[1:]}
    assert done.stdout.startswith(f"{mine} beside {library} (14 molecules)\n")
    assert lines["rows"] == ["5"]
    assert lines["valid"] == ["4", "80.0%"]
    assert lines["unique"] == ["3", "60.0%"]
    assert lines["novel"] == ["2", "40.0%"]
    assert lines["with usual rings"] == ["1", "20.0%"]
    assert lines["syntax"] == ["1", "20.0%"]
    table = pd.read_csv(out, dtype=str, keep_default_na=False).set_index("name")
    assert table["valid"].to_dict() == {
        **dict.fromkeys(["ethanol", "new", "again", "ring"], "yes"),
        "broken": "no",
    }
    assert table.loc["ethanol", ["smiles", "known"]].tolist() == ["CCO", "yes"]
    assert table.loc["ring", ["known", "plausible", "new_rings"]].tolist() == ["no", "no", "1"]
    assert table.loc["broken", ["smiles", "known", "qed"]].tolist() == ["C((", "", ""]


def test_what_cannot_be_measured_is_a_line(step, library, tmp_path):
    mine, empty = tmp_path / "mine.smi", tmp_path / "empty.smi"
    mine.write_text("CCO\n")
    empty.write_text("((\n")
    for file, reference, line in (
        (tmp_path / "none.smi", library, f"{tmp_path}/none.smi: no such file"),
        (mine, empty, f"{empty}: holds no molecule that RDKit reads"),
    ):
        done = step("metrics", file, reference=reference, quiet=True)
        assert (done.exit_code, done.stderr) == (2, f"pairflow metrics: error: {line}\n")
