"""A column of numbers or classes in a user's table: how its fields are read, and what is said of the rest."""

import numpy as np
import pytest

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.draft_condition import choose_classes, suggest_columns
from pairflow.kinds.molecules.data.own_column import OwnColumn, find_classes, read_numbers

NAN = np.nan


@pytest.mark.parametrize(
    ("field", "number", "reason"),
    [
        (text, number, "")
        for text, number in {" 5.1 ": 5.1, "-.5": -0.5, "+3": 3, "6e-3": 0.006, "7.": 7}.items()
    ]
    + [
        (text, NAN, "with < or > or the like")
        for text in ("<0.1", ">10000", "~5", "> 1e4", "≤1.5", "ca. 5", "=3")
    ]
    + [(text, NAN, "not measured") for text in ("n.d.", "N/A", "nd", "nan", "-", "None")]
    + [(text, NAN, "no plain finite number") for text in ("1_000", "inf", "1e999", "٣", "0x1f", "5 %", "5-6")]
    + [("", NAN, "empty"), ("1,234", NAN, "a comma, not clearly decimal")],
)
def test_only_plain_finite_numbers_are_read(field, number, reason):
    values = read_numbers([field])
    np.testing.assert_array_equal(values.numbers, [number])
    assert (values.reasons, values.notation) == ([reason], "")


@pytest.mark.parametrize(
    ("fields", "numbers", "notation"),
    [
        (["5,1", "1,234", "7", ">9,5", "1.234,5"], [5.1, 1.234, 7, NAN, 1234.5], "with decimal commas"),
        (["1,234.5", "1,234", "5.1"], [1234.5, 1234, 5.1], "with commas between thousands"),
        (["1,234,567", "12"], [1234567, 12], "with commas between thousands"),
        (["1,234", "5,678", "12"], [NAN, NAN, 12], ""),  # both readings
        (["1.234,5", "2.000"], [1234.5, 2000], "with decimal commas"),
        (["5,1", "1,2,3", "4"], [NAN, NAN, 4], ""),
    ],
)
def test_commas_are_read_if_the_whole_column_says_what_they_are(fields, numbers, notation):
    values = read_numbers(fields)
    np.testing.assert_array_equal(values.numbers, numbers)
    assert (values.notation, values.clash) == (notation, None)


@pytest.mark.parametrize(
    "fields", [["7", "0,5", "1.007", "3,5"], ["7", "1.234.567", "0.5"], ["<2,5", ">2.5"]]
)
def test_a_column_with_two_decimal_signs_is_refused(column, fields):
    lines = [f"line {fields.index(field) + 2} has '{field}'" for field in fields if field != "7"]
    with pytest.raises(InputError, match=f"^column 'y': {lines[0]}, but {lines[1]}; expected numbers with"):
        column(*fields)
    assert not [*suggest_columns({"y": fields * 9})]


@pytest.mark.parametrize(
    ("text", "row", "field"),
    [
        ("s;y\nC;100\nC;>1.025\n", 3, ">1.025"),
        ("s;y\nC;1.000\nC;2.000\n", 2, "1.000"),  # by the separator
        ("s\ty\nC\t1.025\nC\t988\n", 2, "1.025"),  # by the number of 100 or more
        ("s;y\nC;988\nC;1.025\nC;0.5\n", None, ""),
        ("s\ty\nC\t1.025\nC\t12\n", None, ""),
    ],
)
def test_points_that_may_stand_between_thousands_are_refused(tmp_path, text, row, field):
    (tmp_path / "a.csv").write_text(text)
    if not row:
        assert OwnColumn.read(tmp_path / "a.csv", "y").reasons.count("") > 1
        return
    expected = f"line {row} has {field!r}, which may be {field.replace('.', '')} with points between"
    with pytest.raises(InputError, match=f"^column 'y': {expected} .* or {field}0 with a decimal point; wri"):
        OwnColumn.read(tmp_path / "a.csv", "y")


def test_relations_and_units_beside_a_column_count(tmp_path):
    def read(name, header, *rows):
        (tmp_path / "a.csv").write_text("\n".join([header, *rows]))
        return OwnColumn.read(tmp_path / "a.csv", name)

    rows = ["9,'>',nM", "8,'=',nM", "7,,nM", ",>,uM"]
    header = "S,pIC50,units,Standard Value,Standard Relation,Standard Units"
    own = read("Standard Value", header, *(f"C,5,{n},{row}" for n, row in enumerate(rows)))
    np.testing.assert_array_equal(own.numbers, [NAN, 8, 7, NAN])
    assert own.unused().values.tolist() == [[2, ">9", "with < or > or the like"], [5, "", "empty"]]
    rows = ["C,9,nM", "C,8,nM", "C,7,uM"]
    with pytest.raises(InputError, match=r"expected numbers in one unit, .* in 'nM', line 4 has one in 'uM'"):
        read("Value", "S,Value,Unit", *rows)
    assert read("pValue", "S,pValue,Unit", *rows).reasons == [""] * 3  # a logarithm
    assert read("Value", "S,Value,Correlation", "C,9,>", "C,8,>").reasons == [""] * 2


def test_classes_hold_without_some_of_the_rows():
    values = [*range(60), *[99] * 60]
    own = OwnColumn("y", "row", ((row, str(value), "") for row, value in enumerate(values)))
    with pytest.raises(InputError, match="well under half of them equal to the largest"):
        choose_classes(own, "median", own.lines)
    assert choose_classes(own, "median", own.lines[:100]).settings.classes == 2


@pytest.mark.parametrize(
    ("fields", "classes"),
    [
        (["0", "1.0", "1"] * 20, ("0", "1")),
        (["10", "9", ">20", ""] * 20, ("9", "10")),
        (["inactive", "active", "n.d."] * 20, ("active", "inactive")),
        (["a", "b", "rare"] * 9 + ["a", "b"] * 9, ("a", "b")),
        (["a", "b"] * 10 + [f"x{n}" for n in range(99)], ()),
        ([*map(str, range(6))] * 20, ()),  # numbers
        (["1"] * 20, ()),
    ],
)
def test_classes_are_few_numbers_or_frequent_names(fields, classes):
    assert find_classes(fields) == classes


def test_columns_are_suggested_as_conditions():
    columns = {
        "pIC50": ["5.1", "", "6e0", "7"],
        "censored": ["1", "2", "3", ">10"],
        "comma": ["1,5", "2,5", "3"],
        "mostly text": ["1", "2", "3", "x", "y", "z"],
        "two values": ["0", "1"] * 10,
        "group": ["in", "out"] * 10,
        "not finite": ["1", "2", "nan", "inf"],
        "half empty": ["", "1", "", "2", " ", "3", ""],
        "percent": ["99,0 %", "1,0 %"] * 10,  # no names of classes
        "two signs": ["1,5", "2.5", "3"],
        "split": ["train", "test"] * 10,
        "CID": [str(number) for number in range(900, 920)],
    }
    numbers, classes = suggest_columns(columns)
    assert [name for name in columns if name in numbers] == ["pIC50", "censored", "comma", "half empty"]
    assert [name for name in columns if name in classes] == ["two values", "group"]


@pytest.fixture
def column(tmp_path):
    def build(*fields, classes=()):
        (tmp_path / "a.tsv").write_text("smiles\ty\n" + "".join(f"C\t{field}\n" for field in fields))
        return OwnColumn.read(tmp_path / "a.tsv", "y", classes)

    return build


def test_every_row_without_a_number_is_counted_and_listed(column):
    own = column("1", "", "<0,1", "inf", "2,5", "3", "n.d.", "")
    said = "y: 3 of 8 rows have a number with decimal commas; the others: 2 empty (lines 3, 9), 1 no plain "
    assert own.tally().startswith(f"{said}finite number (line 5; the first: 'inf')")
    assert own.unused().values.tolist() == [
        [3, "", "empty"],
        [4, "<0,1", "with < or > or the like"],
        [5, "inf", "no plain finite number"],
        [8, "n.d.", "not measured"],
        [9, "", "empty"],
    ]


def test_rejected_rows_of_the_table_are_not_called_empty(column):
    own = column("1", "2\tx", "")
    assert own.tally() == "y: 1 of 3 rows have a number; the others: 1 empty (line 4), 1 rejected (line 3)"
    assert own.divided(["1", "2"]).reasons == ["", "rejected", "empty"]


REPEATS = [(4, 2), (6, 2), (5, 3), (8, 7)]  # lines 2, 4, 6; 3, 5; 7, 8


@pytest.mark.parametrize(
    ("replicates", "counting", "said"),
    [
        ("first", [5, 3, 8], "the first"),
        ("median", [6, 3, 8], "their median"),
        ("reject", [NAN, 3, 8], "none"),
    ],
)
def test_of_different_numbers_of_a_molecule_one_counts(column, replicates, counting, said):
    own = column("5", "3", "9.9", "3", "6", "", "8").combined(REPEATS, replicates)
    np.testing.assert_array_equal(own.at([2, 3, 7]), counting)
    text = "1 molecule has several numbers, which differ by up to 4.9 (lines 2, 4, 6)"
    assert f"{text}: {said} counts (replicates: {replicates})." in own.summarise()
    reason = "the molecule, first in line 2, has several values"
    several = [[line, field, reason] for line, field in ((2, "5"), (4, "9.9"), (6, "6"))]
    assert own.unused().values.tolist() == [*several, [7, "", "empty"]]


def test_of_different_classes_of_a_molecule_the_most_frequent_one_counts(column):
    own = column("b", "a", "a", "b", "a", "c", "b", classes=("a", "b")).combined(REPEATS, "median")
    np.testing.assert_array_equal(own.at([2, 3, 7]), [0, NAN, 1])  # a of b, a, a; a tie; b beside none
    assert "y: 6 of 7 rows have a class; the others: 1 none of the classes (line 7; the" in own.tally()
