"""`pairflow metrics`: molecules of any program beside a library, without a model."""

import pandas as pd
import pytest
from rdkit import Chem

TRAINED = [f"{'C' * n}c1ccccc1" for n in range(1, 8)] + [f"{'C' * n}O" for n in range(1, 8)]


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "library.csv"
    path.write_text("id,SMILES\n" + "".join(f"{number},{text}\n" for number, text in enumerate(TRAINED)))
    return path


def test_molecules_are_counted_and_listed(done, library, tmp_path):
    """A known molecule in another spelling, a new one twice, one with a new ring, and no SMILES."""
    mine, out = tmp_path / "mine.smi", tmp_path / "mine.csv"
    mine.write_text("OCC ethanol\nCCCCCCCCO new\nCCCCCCCCO again\nCC1CCC1 ring\nC(( broken\n")
    run = done("metrics", mine, reference=library, out=out, quiet=True)
    lines = {line[:36].strip(): " ".join(line[36:].split()) for line in run.stdout.splitlines()[1:]}
    assert run.stdout.startswith(f"{mine} compared with {library} (14 molecules)\n")
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
    done("metrics", mine, reference=library, out=out.with_suffix(".html"), quiet=True)
    assert '"name":"similarity"' in out.with_suffix(".html").read_text()


def test_a_library_without_molecules_is_a_line(step, library, tmp_path):
    (tmp_path / "empty.smi").write_text("((\n")
    run = step("metrics", library, reference=tmp_path / "empty.smi", quiet=True)
    line = "empty.smi: holds no molecule that RDKit reads and the rules accept\n"
    assert (run.exit_code, run.stderr) == (2, f"pairflow metrics: error: {tmp_path}/{line}")


@pytest.mark.parametrize(("content", "missing"), [("((\n", 6), ("CCN\n", 1)])
def test_no_number_of_too_few_molecules_is_printed(step, library, tmp_path, content, missing):
    (tmp_path / "mine.smi").write_text(content)
    run = step("metrics", tmp_path / "mine.smi", reference=library, quiet=True)
    assert (run.exit_code, run.stdout.count("  -  too few molecules\n")) == (0, missing)
    assert "nan" not in run.stdout


def counts_of(summary):
    return {line[:36].strip(): line[36:].split()[0] for line in summary.splitlines()[1:-1]}


def test_a_broken_record_with_a_title_that_is_smiles_is_no_molecule(step, library, tmp_path):
    """Two good records, two that are broken, and a chain of 6,000 atoms, which RDKit does not survive."""
    good = Chem.MolToMolBlock(Chem.MolFromSmiles("CCCCO"))
    records = [f"CCCCO{good}$$$$\n"] * 2 + ["CCCCO\nbroken\n$$$$\n"] * 2
    (tmp_path / "mine.sdf").write_text("".join(records))
    (tmp_path / "long.smi").write_text("CCO\n" + "C" * 6000 + "\n")
    out = tmp_path / "mine.csv"
    run = step("metrics", tmp_path / "mine.sdf", reference=library, out=out, quiet=True)
    counts = counts_of(run.stdout)
    assert (counts["rows"], counts["valid"], counts["broken record"]) == ("4", "2", "2")
    assert pd.read_csv(out)["valid"].tolist() == ["yes", "yes", "no", "no"]
    counts = counts_of(step("metrics", tmp_path / "long.smi", reference=library, quiet=True).stdout)
    assert (counts["valid"], counts["over 4,096 atoms"]) == ("1", "1")


def test_both_files_are_standardised_as_by_new(step, tmp_path):
    """Acids of which the library has sodium salts, as acids and as ions, are known; an isomer only without
    stereochemistry; a molecule with a metal is known, but is no part of the library."""
    mine, salts = tmp_path / "mine.smi", tmp_path / "salts.smi"
    acids = [f"{'C' * n}C(=O)O" for n in range(1, 7)]
    metal = "C[Mg]Br"
    salts.write_text("".join(f"{acid[:-1]}[O-].[Na+]\n" for acid in acids) + f"C[C@H](N)O\n{metal}\n")
    mine.write_text("\n".join([*acids, "CC(=O)[O-]", "C[C@@H](N)O", metal, "CCCN.Cl"]) + "\n")
    run = step("metrics", mine, reference=salts, quiet=True)
    first, *_, last = run.stdout.splitlines()
    assert first.endswith("(7 molecules)")
    rules = "fragments largest, dummies reject, metals reject. Tautomers count as different"
    assert last.startswith(f"Both files are standardised by these rules: {rules}")
    counts = counts_of(run.stdout)
    assert (counts["valid"], counts["unique"], counts["novel"]) == ("10", "10", "2")
    flat = step("metrics", mine, reference=salts, stereo="drop", quiet=True)
    assert (counts_of(flat.stdout)["novel"], "stereo drop" in flat.stdout) == ("1", True)
