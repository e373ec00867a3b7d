"""Classes of a property: thresholds, labels, names; columns of a user's own table."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from pairflow.config import check
from pairflow.data.classes import Classes, Properties
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.prepare import label_molecules
from pairflow.kinds.molecules.measures.measure import measure_targets
from pairflow.kinds.molecules.measures.nearest_classes import NearestClasses
from pairflow.kinds.molecules.settings import COMPUTED, Conditioning, Molecules
from pairflow.kinds.molecules.structures.descriptors import compute, tabulate
from pairflow.settings.conditions import split_conditions

THREE = ("low", "middle", "high")


def test_quantiles_of_the_training_rows_are_the_thresholds():
    classes = Classes.from_values("logp", np.array([5.0, 1, 4, 2, 6, 3, np.nan]), THREE)
    assert classes.thresholds == (2.0, 4.0)
    values = np.array([-9.0, 2, 2.01, 4, 4.5, np.nan])
    assert Properties((classes,)).labels([values]).tolist() == [0, 0, 1, 1, 2, 3]
    assert Properties((classes,)).labels([values]).dtype == np.uint8
    facts = Properties((classes,)).facts
    assert facts == {"property": "logp", "names": [*THREE], "thresholds": [2.0, 4.0]}


def test_several_properties_have_a_label_each():
    logp = Classes(property="logp", names=THREE, thresholds=(1, 2))
    condition = Properties((logp, Classes(property="qed", names=("low", "high"), thresholds=(0.5,))))
    labels = condition.labels([np.array([2.0, np.nan]), np.array([0.6, 0.4])])
    assert (labels.dtype, labels.tolist()) == (np.float32, [[1, 1], [3, 0]])
    assert condition.targets(["qed=high", "logp=high"], 5, 1).tolist() == [[2, 1]]
    assert condition.targets(["qed=high"], 0, 1).tolist() == [[3, 1]]  # no label of logp
    spread = condition.spread(0, 600)
    cells, counts = np.unique(spread, axis=0, return_counts=True)
    assert cells.shape == (6, 2)  # every class of one beside every class of the other
    assert (abs(counts - 100) < 10).all()
    np.testing.assert_array_equal(condition.spread(100, 50), spread[100:150])
    assert Properties.from_facts(json.loads(json.dumps(condition.facts))) == condition


@pytest.mark.parametrize("number", [2, 3, 5, 9])
def test_classes_of_distinct_values_have_equal_sizes(number):
    names = Conditioning(property="qed", classes=number).labels()
    values = np.random.default_rng(0).permutation(number * 40).astype(float)
    labels = Classes.from_values("qed", values, names).numbers(values)
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
    condition = Properties((Classes(property="a=b", names=THREE, thresholds=(1, 2)),))
    assert [condition.targets([f"a=b={name}"], 0, 1).tolist() for name in THREE] == [[0], [1], [2]]
    assert condition.targets(["a=b=spread"], 2, 4).tolist() == [2, 0, 1, 2]
    message = "condition: unknown class 'hihg' of a=b (did you mean 'high'?): known are low, middle, high"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        condition.read(["a=b=hihg"])


TWO = Properties(tuple(Classes(property=name, names=THREE, thresholds=(1, 2)) for name in ("logp", "x, y")))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("logp=spread", {"logp": "spread"}),
        ("x, y=low, logp=high", {"x, y": "low", "logp": "high"}),
        (["logp=low", "x, y=middle"], {"logp": "low", "x, y": "middle"}),
        ("logpp=low", "condition: the model was trained for logp and x, y, not for 'logpp' (did you mean"),
        ("logp=low,logp=high", "condition: logp is asked for twice"),
        ("logp=low,oops", "condition: expected logp=<class> or x, y=<class>, found 'oops'"),
    ],
)
def test_conditions_of_several_properties_are_read_or_refused_in_one_line(given, found):
    conditions = split_conditions(given)
    if isinstance(found, dict):
        assert TWO.read(conditions) == found
        return
    with pytest.raises(InputError) as error:
        TWO.read(conditions)
    assert str(error.value).startswith(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"property": "pIC50"}, "condition.property: unknown property 'pIC50': known are qed, logp,"),
        ([{"property": "qed"}, {"column": "qed"}], "condition: ['qed', 'qed'] names a property twice"),
        ({"column": "logp", "classes": ["a", "b"]}, "condition: classes: expected a number of classes of"),
        ({"column": "y", "classes": ["a=1", "b"]}, "condition.classes: 'a=1' cannot be asked for: expected"),
    ],
)
def test_settings_of_a_condition_that_cannot_be_are_refused_in_one_line(given, message):
    with pytest.raises(InputError) as error:
        check(Molecules, {"source": "qed.csv", "length": 16, "condition": given}, "data")
    assert str(error.value).startswith(f"data: {message}")


def test_how_samples_meet_several_classes():
    weight = Classes(property="weight", names=THREE, thresholds=(10, 20))
    rings = Classes(property="rings", names=("low", "high"), thresholds=(1,))
    asked = {weight: np.array([0.0, 0, 1, 2]), rings: np.array([0.0, 1, 1, 0])}
    found = pd.DataFrame({"weight": [7.0, 9, 23, 14], "rings": [0, 2, 2, 2]})
    expected = {"weight_in_class": 2, "rings_in_class": 3, "in_class": 2}
    assert measure_targets(asked, found) == expected
    assert measure_targets({weight: np.zeros(2, np.uint8)}, found[:2]) == {"in_class": 2}
    assert measure_targets({weight: np.empty(0)}, found[:0]) == {"in_class": 0}


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
    condition, labels = label_molecules([Conditioning(column="pIC50", classes=3)], rows, table)
    assert condition.properties == (Classes(property="pIC50", names=THREE, thresholds=(5, 6.5)),)
    assert labels.tolist() == [0, 1, 3, 2, 2]  # the last row validates, and sets no threshold


def test_a_column_names_classes(tmp_path):
    """The molecule in the first and the fourth row has a value in the fourth only, which counts."""
    table = tmp_path / "assay.csv"
    table.write_text("smiles,active\nC,\nCC,1\nCCC,n.d.\nC,1.0\nCCCC,0\n")
    setting, rows = Conditioning(column="active", classes=[0, 1]), prepared([0, 1, 2, 4, 1])
    condition, labels = label_molecules([setting], rows, table, [(5, 0)])
    assert labels.tolist() == [1, 1, 2, 0, 1]
    assert condition.targets(["active=1"], 0, 1).tolist() == [1]
    assert condition.targets(["active=spread"], 0, 3).tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="no training row has the class '2' of active; leave it out of"):
        label_molecules([Conditioning(column="active", classes=[0, 1, 2])], rows, table)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("a.csv", "IC50", "{path}: no column 'IC50' (did you mean 'pIC50'?); found 'smiles', 'pIC50'"),
        ("b.smi", "pIC50", "{path}: a SMILES file has no columns, so there is no column 'pIC50'"),
    ],
)
def test_a_table_without_the_column_is_refused(tmp_path, name, column, message):
    path = tmp_path / name
    path.write_text("smiles,pIC50\nC,5\n" if name == "a.csv" else "C 5\n")
    with pytest.raises(InputError, match=re.escape(message.format(path=path))):
        label_molecules([Conditioning(column=column)], prepared([0, 0]), path)


TRAINED = ["CCCCO", "CCCCCO", "c1ccccc1", "Cc1ccccc1", "CCN", "c1ccncc1"]
PIC50 = Classes(property="pIC50", names=("low", "high"), thresholds=(5,))
FINGERPRINTS = tabulate(["fingerprint"], TRAINED)["fingerprint"]
DRAWN = ["CCCCCCO", "CCc1ccccc1", "CCc1ccccc1", "CCN"]  # near an alcohol, toluene twice, and an amine


def test_samples_follow_a_column_if_their_nearest_training_molecules_are_in_the_class():
    """Alcohols are low, aromatics high; the amine has no value, so that an alcohol or aromatic is nearest."""
    labels = np.array([[0], [0], [1], [1], [2], [1]])
    valid = np.array([True, True, False, True])
    asked = {PIC50: np.array([0, 1, 0, 0])}
    nearest = NearestClasses(asked, labels, FINGERPRINTS)
    rows = nearest.find(tabulate(["fingerprint"], DRAWN)["fingerprint"])
    assert [TRAINED[row] for row in rows[:3]] == ["CCCCCO", "Cc1ccccc1", "Cc1ccccc1"]
    assert nearest.classes[:, 0].tolist() == [0, 0, 1, 1, 1]  # without the amine
    assert rows[3] < 5
    found = nearest.measure(valid, rows[:3])
    assert found["nearest_in_class"] == 2  # the third valid sample should be low, and is not
    assert found["nearest_by_chance"] == pytest.approx(0.4 + 0.6 + 0.4)
    none = nearest.measure(np.zeros(4, bool), rows[:0])
    assert (none["nearest_in_class"], none["nearest_by_chance"]) == (0, 0)
    one = NearestClasses({PIC50: np.ones(4)}, labels, FINGERPRINTS).measure(valid, rows[:3])
    assert one == {"nearest_in_class": 2, "nearest_by_chance": pytest.approx(1.8)}


def test_several_columns_are_followed_if_all_classes_are_met():
    ki = Classes(property="ki", names=THREE, thresholds=(1, 2))
    asked = {PIC50: np.array([1.0, 1]), ki: np.array([2.0, 0])}  # ki is asked to be high, then low
    labels = np.array([[0, 2.0], [0, 0], [1, 2], [1, 2], [1, 3], [1, 0]], np.float32)  # the amine has no ki
    nearest = NearestClasses(asked, labels, FINGERPRINTS)
    found = nearest.measure(np.ones(2, bool), np.array([2, -1]))  # the second sample is near to none
    assert found == {"nearest_in_class": 1, "nearest_by_chance": pytest.approx(2 / 5 + 1 / 5)}
