"""A column of numbers in a user's table: what counts as a number, and what is said of the rest."""

import math

import pytest

from pairflow.kinds.molecules.own_column import OwnColumn, plain_number


@pytest.mark.parametrize(
    ("field", "number"),
    [(" 5.1 ", 5.1), ("-.5", -0.5), ("+3", 3.0), ("6e-3", 0.006), ("7.", 7.0)]
    + [
        (text, None)
        for text in ("", "<0.1", "1_000", "1,5", "inf", "1e999", "nan", "N/A", "٣", "0x1f", "5 %")
    ],
)
def test_only_plain_finite_numbers_are_read(field, number):
    assert plain_number(field) == number


def test_every_row_without_a_number_is_counted_and_listed(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("smiles,y\nC,1\nCC,\nCCC,<0.1\n\nCCCC,inf\nCCO,2\nOCC,3\nCO,5\nOC,5\nOCO,\nC(O)O,4\nO\n")
    column = OwnColumn(table, "y")
    assert [number for number in column.numbers if not math.isnan(number)] == [1, 2, 3, 5, 5, 4]
    repeats = [
        (8, 7),
        (10, 9),
        (12, 11),
    ]  # another number, the same, and a number where the first row has none
    counts = "y: 6 of 11 rows have a number, 3 have none (lines 3, 11, 13), 2 hold no plain finite number"
    assert column.tally() == f"{counts} (lines 4, 6; the first: '<0.1')"
    text = column.summarise(repeats)
    assert "Molecules without a number are kept, and are trained on without a value." in text
    assert "the number is another one in 2 later rows (lines 8, 12), and is not used." in text
    assert column.unused(repeats).values.tolist() == [
        [3, "", "empty"],
        [4, "<0.1", "no plain finite number"],
        [6, "inf", "no plain finite number"],
        [8, "3", "the molecule is in line 7 as well, which counts"],
        [11, "", "empty"],
        [12, "4", "the molecule is in line 11 as well, which counts"],
        [13, "", "empty"],
    ]


def test_of_many_lines_the_first_runs_are_named(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("smiles,y\n" + "".join(f"C,{n if n % 3 == 0 else ''}\n" for n in range(30)))
    column = OwnColumn(table, "y")
    assert "20 have none (lines 3-4, 6-7, 9-10, 12-13, 15-16, 18-19, ...)" in column.summarise()
