"""Classes of a property: thresholds, labels, names; columns of a user's own table."""

import re

import numpy as np
import pandas as pd
import pytest

from pairflow.data.classes import Classes
from pairflow.errors import InputError
from pairflow.kinds.molecules.descriptors import COMPUTED, compute
from pairflow.kinds.molecules.prepare import label_molecules
from pairflow.kinds.molecules.settings import Conditioning

THREE = ("low", "middle", "high")


def test_quantiles_of_the_training_rows_are_the_thresholds():
    classes = Classes.from_values("logp", np.array([5.0, 1, 4, 2, 6, 3, np.nan]), THREE)
    assert classes.thresholds == (2.0, 4.0)
    assert classes.labels(np.array([-9.0, 2, 2.01, 4, 4.5, np.nan])).tolist() == [0, 0, 1, 1, 2, 3]
    assert classes.labels(np.array([1.0])).dtype == np.uint8


@pytest.mark.parametrize("number", [2, 3, 5, 9])
def test_classes_of_distinct_values_have_equal_sizes(number):
    names = Conditioning(property="qed", classes=number).labels()
    values = np.random.default_rng(0).permutation(number * 40).astype(float)
    labels = Classes.from_values("qed", values, names).labels(values)
    assert np.bincount(labels).tolist() == [40] * number
    assert [values[labels == c].max() for c in range(number)] == [40.0 * c - 1 for c in range(1, number + 1)]
    assert Conditioning(property="qed").labels() == THREE
    assert Conditioning(property="qed", classes=2).labels() == ("low", "high")
    assert Conditioning(column="pIC50", classes=4).labels() == ("q1", "q2", "q3", "q4")


def test_a_property_with_too_few_values_is_refused():
    message = "condition: rings has too few different values for 3 classes: 'middle' would be empty; choose"
    with pytest.raises(InputError, match=message):
        Classes.from_values("rings", np.array([0.0] * 9 + [1.0]), THREE)
    with pytest.raises(InputError, match="condition: no training row has a value of qed"):
        Classes.from_values("qed", np.array([np.nan]), THREE)


def test_a_condition_names_a_class():
    classes = Classes(property="a=b", names=THREE, thresholds=(1, 2))
    assert [classes.parse(f"a=b={name}") for name in THREE] == [0, 1, 2]
    for wrong, message in {
        "high": "condition: expected a=b=<class>, found 'high'",
        "qed=high": "condition: the model was trained for a=b, not for 'qed'",
        "a=b=hihg": "condition: unknown class 'hihg' of a=b (did you mean 'high'?): "
        "known are low, middle, high",
    }.items():
        with pytest.raises(InputError, match=re.escape(message)):
            classes.parse(wrong)


def test_properties_of_known_molecules():
    """Benzene and naphthalene: weights by IUPAC's, rings as drawn, logP by Crippen's contributions."""
    smiles = ["c1ccccc1", "c1ccc2ccccc2c1", "not a molecule"]
    assert compute("rings", smiles)[:2].tolist() == [1, 2]
    np.testing.assert_allclose(compute("weight", smiles)[:2], [78.11, 128.17], atol=0.01)
    np.testing.assert_allclose(compute("logp", smiles)[:2], [1.6866, 2.8398], atol=1e-4)
    for name in COMPUTED:
        assert np.isnan(compute(name, smiles)).tolist() == [False, False, True]


def prepared(rows):
    splits = ["train"] * (len(rows) - 1) + ["validation"]
    return pd.DataFrame({"row": rows, "smiles": ["C"] * len(rows), "split": splits})


def test_a_column_of_the_users_table_is_read_by_row_and_empty_fields_have_no_label(tmp_path):
    table = tmp_path / "assay.csv"
    table.write_text("smiles,pIC50\nC,5\nbad,100\nCC,6.5\nCCC,\nCCCC,7\nCCCCC,9\n")
    rows = prepared([0, 2, 3, 4, 5])
    classes, labels = label_molecules(Conditioning(column="pIC50", classes=3), rows, table)
    assert classes == Classes(property="pIC50", names=THREE, thresholds=(5, 6.5))
    assert labels.tolist() == [0, 1, 3, 2, 2]  # the last row validates, and sets no threshold


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("a.csv", "IC50", "{path}: no column 'IC50' (did you mean 'pIC50'?); found smiles, pIC50"),
        ("a.csv", "smiles", "{path}: column 'smiles': could not convert string to float: 'C'"),
        ("a.smi", "pIC50", "{path}: a SMILES file has no columns, so there is no column 'pIC50'"),
    ],
)
def test_a_table_without_the_column_is_refused(tmp_path, name, column, message):
    path = tmp_path / name
    path.write_text("smiles,pIC50\nC,5\n")
    with pytest.raises(InputError, match=re.escape(message.format(path=path))):
        label_molecules(Conditioning(column=column), prepared([0, 0]), path)
