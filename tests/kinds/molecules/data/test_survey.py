"""A survey counts like a count by hand, and agrees with `prepare`."""

from itertools import count

import numpy as np
import openpyxl
import pytest

from pairflow.errors import InputError
from pairflow.kinds.molecules.data.library import Row
from pairflow.kinds.molecules.data.prepare import SPECIALS, prepare
from pairflow.kinds.molecules.data.survey import (
    FEATURES,
    RADICALS,
    Survey,
    draw_rows,
    find_column,
    first_rejected,
    read_found,
)
from pairflow.kinds.molecules.settings import Molecules

ROWS = [
    *map(Row, count(1), ["CCO", "OCC", "x"]),
    Row(4, "mol3", reason="broken record"),
    *map(Row, count(5), ["y", "CC(=O)[O-].[Na+]", "C[C@H](N)C(=O)O", "F/C=C/F", "[13CH4]", "c1ccccc1CC"]),
]
LARGEST = {"fragments": "largest"}


def settings(**values):
    return Molecules(source="x.smi", **{"length": 24, **values})


def survey_texts(texts, unit="line", **values):
    """The survey of texts that stand in one line each."""
    return Survey(map(Row, count(1), texts), settings(**values), unit)


def test_rows_are_drawn_in_order_and_all_are_equally_likely():
    rows = [Row(number, "C") for number in range(1, 2001)]
    assert draw_rows(iter(rows), 2000) == (rows, 2000)
    chosen, total = draw_rows(iter(rows), 500)
    assert (len(chosen), total) == (500, 2000)
    assert chosen == sorted(set(chosen))
    assert draw_rows(iter(rows), 500) == (chosen, total)
    counts = np.histogram([row.number for row in chosen], [1, 501, 1001, 1501, 2001])[0]
    assert ((counts - 125) ** 2 / 125).sum() < 16.3  # chi-square, 3 degrees of freedom, p = 0.001


def test_molecules_that_repeat_are_not_counted_again_where_some_rows_are_read():
    """300 molecules, each in four rows: of 600 rows, and of the 300 that the whole file has."""
    rows = [Row(number, "C" * (number % 300 + 1)) for number in range(1, 1201)]
    chosen, total = draw_rows(rows, 600)
    some = Survey(chosen, settings(), of=total)
    assert (some.total, some.of, len(some.lengths) + some.duplicates) == (600, 1200, 600)
    assert len(some.lengths) / some.share == pytest.approx(300, rel=0.05)
    assert Survey(rows, settings()).share == 1
    unlike = Survey(rows[:300], settings(), of=1200)
    assert len(unlike.lengths) / unlike.share == 1200


def test_counts():
    found = Survey(ROWS, settings(**LARGEST, split="scaffold"))
    assert (found.total, found.duplicates) == (10, 1)
    rejected = [[3, "x", "unparsable"], [4, "mol3", "broken record"], [5, "y", "unparsable"]]
    assert found.rejects.values.tolist() == rejected
    firsts = [("unparsable", 2, 3, "x"), ("broken record", 1, 4, "mol3")]
    assert list(first_rejected(found.rejects)) == firsts
    assert list(found.features.values()) == [1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 3]
    assert found.ions == 1
    assert found.lengths.tolist() == [5, 9, 13, 9, 3, 12]
    assert found.groups.tolist() == [0, 0, 0, 0, 0, 1]


def test_what_rules_reject_is_counted_all_the_same():
    rules = {**LARGEST, "dummies": "reject", "metals": "reject", "min_heavy_atoms": 3}
    texts = ["*CC", "C[Zn]C", "CC", "CCO", "CC(=O)O[Na]", "CC[NH3+]", "CCC[NH3+].[Cl-]"]
    found = survey_texts(texts, **rules)
    reasons = ["with an R group or dummy atom", "with a metal", "under 3 heavy atoms", "with a metal"]
    assert list(found.rejects["reason"]) == reasons
    counts = {FEATURES[name]: number for name, number in found.features.items()}
    assert (counts["dummies"], counts["metals"], counts["min_heavy_atoms"]) == (1, 2, 5)
    assert survey_texts(["C[CH]C", "C[C](C#N)O", "CCO"]).features[RADICALS] == 2
    assert found.ions == 1


@pytest.mark.parametrize("rules", [{}, LARGEST, {"stereo": "drop"}])
def test_length_vocabulary_and_scaffolds_are_those_of_prepare(rules):
    found = Survey(ROWS, settings(**rules))
    for share in (0, 0.2, 0.5):
        length = found.length(share, multiple=1)
        values = {**rules, "drop_duplicates": True, "max_too_long_share": share}
        prepared = prepare(ROWS, settings(length=length, **values))
        assert prepared.vocabulary.size == found.vocabulary_size(length)
        assert len(prepared.smiles) == (found.lengths <= length).sum()
        with pytest.raises(InputError, match="length: "):
            prepare(ROWS, settings(length=length - 1, **values))


def test_length_is_the_least_multiple_of_eight_and_only_what_fits_counts_for_the_vocabulary():
    found = survey_texts(["C" * n for n in range(1, 201)], **LARGEST)
    lengths = [found.length(share) for share in (0, 0.005, 0.01)]
    assert lengths == [208, 208, 200]  # of 202, 201 and 200 tokens
    found = survey_texts(["C", "N" * 9 + "O"], **LARGEST)
    assert [found.vocabulary_size(length) for length in (3, 11, 12)] == [11, 11, 13]
    known = (*SPECIALS, "N", "O", "S")  # a model's to start from
    assert [found.vocabulary_size(length, known) for length in (3, 12)] == [14, 14]


REASONS = r"unparsable \(2 rows, the first in line 1: 'x'\); empty \(1 row, the first in line 3: ''\)"


@pytest.mark.parametrize(
    ("texts", "message", "rules"),
    [
        (["x", "y", ""], f"{REASONS}$", LARGEST),
        (["[C][=C][O]"] * 3, ".*selfies.decoder", {}),
        (["*CC*"] * 3, ".*--dummies keep", {"dummies": "reject"}),
        (["*CC*"] * 3, ".*--representation smiles", {"representation": "groups"}),
    ],
)
def test_without_a_molecule_the_reasons_are_said_and_what_to_do(texts, message, rules):
    with pytest.raises(InputError, match=f"^no usable molecule in 3 rows: {message}"):
        survey_texts(texts, **rules)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("id,SMILES,Structure\n1,CCO,C\n", "SMILES"),
        ("Structure,canonical_smiles\nC,CCO\n", "canonical_smiles"),
        ("id,Molecules in here\n1,CCO\n2,x\n3,N\n", "Molecules in here"),
        ("smiles,kept\nnone,CCO\n", "kept"),
        ("ConnectivitySMILES,Isomeric SMILES\nCO,CO\n", "Isomeric SMILES"),
        (",pIC50\nCCO,5\n", "column 1"),
        ("id,s\n1,[C][C][O]\n", "{path}: column 's' holds SELFIES, not SMILES; decode them"),
        ("id,s\n1,C&#64;O\n2,C&gt;C\n3,C\n", "{path}: column 's' holds HTML, not SMILES; unescape them"),
        ("a,b\nCCO,CN\n", "{path}: several columns hold SMILES, 'a', 'b': name one with --column"),
        ("CCO,1\nCN,2\n", "{path}: no header line: its first line holds the molecule 'CCO'"),
    ],
)
def test_the_column_is_found_or_the_problem_named(tmp_path, text, column):
    (path := tmp_path / "a.csv").write_text(text)
    try:
        found = find_column(path).name
    except InputError as error:
        found = str(error)
    assert found.startswith(column.format(path=path))


def test_the_column_is_found_on_any_sheet_of_an_excel_file(tmp_path):
    book = openpyxl.Workbook()
    for row in (["id", "number"], ["a", 1], ["b", 2]):
        book.active.append(row)
    sheets = {"a": "=B2", "b": "CCO", "c": "CCO"}
    for title, text in sheets.items():
        book.create_sheet(title).append(["smiles", "value"])
        book[title].append([text, 1])
    book.save(path := tmp_path / "a.xlsx")
    assert find_column(path)[:3] == ("smiles", "b", {"smiles": ["CCO"], "value": ["1"]})
    assert find_column(path, "value").sheet == "a"
    assert find_column(path, sheet="c").sheet == "c"
    assert list(read_found(path)) == [Row(2, "CCO")]
    expected = r"no column holds SMILES in most rows; found 'smiles', 'value' \('smiles': formulas without "
    with pytest.raises(InputError, match=f"{expected}stored values; "):
        find_column(path, sheet="a")
    with pytest.raises(InputError, match="no column 'x'; found on sheet 'Sheet' 'id', 'number'; on sheet"):
        find_column(path, "x")


def test_scaffolds_stay_on_one_side():
    rings = ["C1CC1", "C1CCC1", "c1ccccc1", "c1ccncc1", "C1CCCC1", "C1COC1", "C1CCNC1", "c1ccsc1"]
    rows = [*map(Row, count(1), ["C" * n + ring for ring in rings for n in range(1, 6)])]
    share = {"validation_fraction": 0.25}
    prepared = prepare(rows, settings(split="scaffold", **share))
    sides = np.array(prepared.smiles["split"]).reshape(8, 5)
    assert (sides == sides[:, :1]).all()
    assert sorted(sides[:, 0]) == ["train"] * 6 + ["validation"] * 2
    again = prepare(rows, settings(split="scaffold", split_seed=43, **share))
    assert list(again.smiles["split"]) != list(prepared.smiles["split"])
    at_random = np.array(prepare(rows, settings(**share)).smiles["split"]).reshape(8, 5)
    assert (at_random != at_random[:, :1]).any()
