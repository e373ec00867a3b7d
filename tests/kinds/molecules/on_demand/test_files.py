"""Files of molecules: what is written is what other programs read back."""

import gc
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from rdkit import Chem

from pairflow.artifacts import Metadata, read_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.library import read_rows
from pairflow.kinds.molecules.data.survey import read_found
from pairflow.kinds.molecules.on_demand.files import writer

SMILES = ["CCO", "c1ccncc1", "C[C@H](N)C(=O)O", "F/C=C/F", "[NH3+]CC(=O)[O-]", "C"]
NAMES, WEIGHTS = [f"pairflow-{n}" for n in range(1, 7)], [46.07, 79.1, 89.09, 64.03, 75.07, 16.04]
TABLE = pd.DataFrame({"name": NAMES, "smiles": SMILES, "weight": WEIGHTS})
MADE = Metadata(kind="molecules", parameters={"seed": 0})


@pytest.fixture
def write(tmp_path):
    def run(name, table=TABLE):
        path = tmp_path / name
        writer(path, parsed=True, properties="weight" in table)(path, table, MADE)
        return path

    return run


def test_smi_is_read_by_rdkit(write):
    path = write("x.smi", TABLE.drop(columns="weight"))
    supplier = Chem.SmilesMolSupplier(str(path), titleLine=False)
    molecules = [supplier[n] for n in range(len(supplier))]
    assert [Chem.MolToSmiles(molecule) for molecule in molecules] == SMILES
    assert [molecule.GetProp("_Name") for molecule in molecules] == list(TABLE["name"])


def test_sdf_keeps_molecules_stereochemistry_and_properties_in_the_plane(write):
    molecules = list(Chem.SDMolSupplier(str(write("x.SDF"))))
    assert [Chem.MolToSmiles(molecule) for molecule in molecules] == SMILES
    assert [molecule.GetProp("_Name") for molecule in molecules] == list(TABLE["name"])
    assert [float(molecule.GetProp("weight")) for molecule in molecules] == list(TABLE["weight"])
    for molecule in molecules[:-1]:
        places = molecule.GetConformer().GetPositions()
        assert (places[:, 2] == 0).all()
        assert len({tuple(place) for place in places}) == molecule.GetNumAtoms()


def test_csv_and_parquet_hold_the_table(write):
    pd.testing.assert_frame_equal(pd.read_csv(write("x.csv")), TABLE)
    found, metadata = read_table(write("x.parquet"), "molecules")
    pd.testing.assert_frame_equal(found.to_pandas(), TABLE)
    assert metadata.parameters == {"seed": 0}
    rows = read_found(write("x.parquet"))
    assert [(row.text, row.name) for row in rows] == [*zip(SMILES, NAMES, strict=True)]
    odd = pd.DataFrame({"name": ["a", "b", "c"], "smiles": ["C(", '"', "<mask>,"]})
    pd.testing.assert_frame_equal(pd.read_csv(write("x.csv", odd)), odd)


PROPERTIES = {"qed": 0.54321, "sa": 2.0, "logp": -0.5678, "weight": 180.1593, "similarity": 1 / 3}
ROUNDED = {"qed": "0.543", "sa": "2.00", "logp": "-0.57", "weight": "180.16", "similarity": "0.333"}


def test_text_is_rounded_and_parquet_has_all_digits(write):
    table = TABLE.assign(**PROPERTIES)
    header, first, *_ = write("x.csv", table).read_text().splitlines()
    assert dict(list(zip(header.split(","), first.split(","), strict=True))[2:]) == {**ROUNDED}
    molecule = next(Chem.SDMolSupplier(str(write("x.sdf", table))))
    assert {name: molecule.GetProp(name) for name in ROUNDED} == ROUNDED
    row = read_table(write("x.parquet", table), "molecules")[0].to_pylist()[0]
    assert {name: row[name] for name in PROPERTIES} == PROPERTIES


def test_excel_shows_rounded_numbers_and_takes_no_text_for_a_formula(write):
    table = TABLE.assign(**PROPERTIES, nearest_name="=1+1\x07")
    sheet = openpyxl.load_workbook(write("x.xlsx", table)).active
    header, first, *rows = sheet.iter_rows()
    cells = {name.value: cell for name, cell in zip(header, first, strict=True)}
    assert list(cells) == list(table)
    assert (len(rows), cells["qed"].value, cells["qed"].number_format) == (5, 0.54321, "0.000")
    assert (cells["nearest_name"].value, cells["nearest_name"].data_type) == ("=1+1", "s")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("-CH3", "'-CH3"),
        ("\t=1", "'\t=1"),
        ("'=1", "''=1"),
        ("-1.5", "-1.5"),
        ("a=b", "a=b"),
    ],
)
def test_a_name_is_no_formula_in_csv_and_comes_back(write, text, cell):
    table = pd.DataFrame({"name": [text], "smiles": ["C"]})
    path = write("x.csv", table)
    assert pd.read_csv(path, dtype=str, keep_default_na=False).name.tolist() == [cell]
    assert [row.name for row in read_rows(path)] == [text.strip()]
    assert write("x.smi", table).read_text() == f"C {text}\n"  # which no spreadsheet runs
    assert pd.read_parquet(write("x.parquet", table)).name[0] == text


@pytest.mark.parametrize(
    ("name", "holds", "message"),
    [
        ("x.txt", (True, False), r"unknown suffix '\.txt'; expected \.smi, \.csv, \.xlsx, \.sdf,"),
        ("x.sdf", (False, False), r"x\.sdf: SDF files can only hold valid molecules; expected \.smi"),
        ("x.smi", (True, True), r"cannot hold properties; expected \.csv, \.xlsx, \.sdf, \.parquet or"),
    ],
)
def test_a_file_that_cannot_hold_the_table_is_refused(tmp_path, name, holds, message):
    with pytest.raises(InputError, match=message):
        writer(tmp_path / name, *holds)


SUFFIXES = (".smi", ".csv", ".xlsx", ".sdf", ".parquet", ".html")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_one_error(monkeypatch, tmp_path, suffix):
    """And no "Exception ignored" from a file that could not be completed."""
    ignored, full = [], tmp_path / "full"
    full.symlink_to("/dev/full")  # PyArrow removes a file that it could not write
    monkeypatch.setattr("sys.unraisablehook", ignored.append)
    table = TABLE if suffix != ".smi" else TABLE.drop(columns="weight")
    with pytest.raises(OSError, match="No space left"):
        writer(Path(f"x{suffix}"), True, suffix != ".smi")(full, table, MADE)
    gc.collect()
    assert not ignored


def test_names_with_line_breaks_are_one_line(write):
    """In SMILES files, and in SDF files, where an empty line ends a value."""
    names = {"name": ["a\nCC b\r\nc", "d"], "nearest_name": ["x\n\ny", ""]}
    table = pd.DataFrame(names | {"smiles": ["C", "CC"]})
    assert write("x.smi", table[["name", "smiles"]]).read_text() == "C a CC b c\nCC d\n"
    first, second = Chem.SDMolSupplier(str(write("x.sdf", table)))
    assert (first.GetProp("_Name"), first.GetProp("nearest_name")) == ("a CC b c", "x  y")
    assert second.GetProp("_Name") == "d"
