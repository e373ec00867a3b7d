"""Files of molecules: what is written is what other programs read back."""

import pandas as pd
import pytest
from rdkit import Chem

from pairflow.artifacts import Metadata, read_table
from pairflow.data.molecule_files import writer
from pairflow.errors import InputError

SMILES = ["CCO", "c1ccncc1", "C[C@H](N)C(=O)O", "F/C=C/F", "[NH3+]CC(=O)[O-]", "C"]
NAMES, WEIGHTS = [f"pairflow-{n}" for n in range(1, 7)], [46.069, 79.102, 89.094, 64.034, 75.067, 16.043]
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


def test_text_has_three_decimals_and_parquet_all_digits(write):
    table = TABLE.assign(weight=[46.06949, 1 / 3, 2.0, 1e-5, 123456.0, -0.5])
    text = ["46.069", "0.333", "2.000", "0.000", "123456.000", "-0.500"]
    assert [line.split(",")[2] for line in write("x.csv", table).read_text().splitlines()[1:]] == text
    molecules = Chem.SDMolSupplier(str(write("x.sdf", table)))
    assert [molecule.GetProp("weight") for molecule in molecules] == text
    assert list(read_table(write("x.parquet", table), "molecules")[0]["weight"].to_pylist()) == list(
        table.weight
    )


def test_strings_that_are_no_molecules_come_back_from_csv(write):
    odd = pd.DataFrame({"name": ["a", "b", "c"], "smiles": ["C(", '"', "<mask>,"]})
    pd.testing.assert_frame_equal(pd.read_csv(write("x.csv", odd)), odd)


@pytest.mark.parametrize(
    ("name", "parsed", "properties", "message"),
    [
        ("x.txt", True, False, r"x\.txt: unknown suffix '\.txt'; expected \.smi, \.csv, \.sdf, \.parquet"),
        ("x", True, False, "x: unknown suffix ''"),
        ("x.sdf", False, False, r"x\.sdf: SDF files can only hold valid molecules; leave out --raw"),
        ("x.smi", True, True, r"SMILES files cannot hold properties; expected \.csv, \.sdf or \.parquet"),
    ],
)
def test_a_file_that_cannot_hold_the_table_is_refused(tmp_path, name, parsed, properties, message):
    with pytest.raises(InputError, match=message):
        writer(tmp_path / name, parsed, properties)
