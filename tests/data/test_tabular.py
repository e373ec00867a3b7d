"""Tables that people have: each layout and each compression gives the same columns."""

import bz2
import gzip
import io
import zipfile
from contextlib import nullcontext

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from pairflow.data import tabular
from pairflow.data.tabular import columns, describe_sheet, open_table
from pairflow.errors import InputError


def zipped(content, names=("a.csv",)):
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return packed.getvalue()


def zstandard(content):
    return pa.compress(content, codec="zstd", asbytes=True)


@pytest.fixture
def table(tmp_path):
    """Write a file; returns its header, and its records with their numbers."""

    def read(name, content, column=None, sheet=None):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        with open_table(tmp_path / name, column, sheet) as opened:
            return opened.header, [*opened.read(*opened.header)]

    return read


LAYOUTS = {
    "separator line": ("sep=;\na;b,c\n1;2\n", ["a", "b,c"], (3, ["1", "2"])),
    "quoted separator line": ('"sep=|"\na|b\n1;2|3\n', ["a", "b"], (3, ["1;2", "3"])),
    "comment above": ("# made by x, y\na,b\nC,2\nN,3\n", ["a", "b"], (3, ["C", "2"])),
    "comments above": ("# made\n\n# by x\nid,b\n1,2\n", ["id", "b"], (5, ["1", "2"])),
    "header in a comment": ("# made\n# a b; c\n1; 2\n3; 4\n", ["a b", "c"], (3, ["1", " 2"])),
    "comment and usual names": ("#x,y\nid,smiles\n1,C\n", ["id", "smiles"], (3, ["1", "C"])),
    "title": ("Table S1. All, of this work\na,b,c,d\n1,2,3,4\n", [*"abcd"], (3, [*"1234"])),
    "title of a spreadsheet": ("Table S1,,\n,,\na,b,c\n1,2,3\n", [*"abc"], (4, [*"123"])),
    "decimal commas": ("a;b;c\n1;2,5;3\n1;2,5;3\n", [*"abc"], (2, ["1", "2,5", "3"])),
    "commas in one column": ("text\nyes, no\nno\n", ["text"], (2, ["yes, no"])),
    "a comma in each row": ("text\nI see, no\nOh no, yes\n", ["text"], (2, ["I see, no"])),
    "blanks after separators": ("a\nC, x\nN, y\n", ["a", "column 2"], (2, ["C", " x"])),
    "no name": (",b\n0,C\n", ["column 1", "b"], (2, ["0", "C"])),
    "no last name": ("a\n1,2\n3,4\n", ["a", "column 2"], (2, ["1", "2"])),
    "commas in names": ("Name\tMol\n2,3,4-x\tC\n2,3,4-y\tC\n", ["Name", "Mol"], (2, ["2,3,4-x", "C"])),
    "rows numbered by R": ('"a"\t"b"\n"1"\tx\ty\n"2"\tz\ty\n', ["column 1", *"ab"], (2, [*"1xy"])),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_header_and_separator_are_found(table, layout):
    content, header, first = LAYOUTS[layout]
    found, records = table("a.csv", content)
    assert (found, records[0]) == (header, first)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.CSV", bytes),
        ("a.csv.GZ", gzip.compress),
        ("a.csv.bz2", lambda content: bz2.compress(content[:9]) + bz2.compress(content[9:])),
        ("a.csv.zst", lambda content: zstandard(content[:9]) + zstandard(content[9:])),
        ("a.csv.zip", zipped),
        ("library.zip", lambda content: zipped(content, ["__MACOSX/._a.csv", ".DS_Store", "x/a.csv"])),
    ],
)
def test_compressed_tables_are_read_as_they_are(table, name, pack):
    rows = "".join(f"{number},C\n" for number in range(2000))
    header, records = table(name, pack(f"id,smiles\n{rows}".encode()))
    assert header == ["id", "smiles"]
    assert records == [(number + 2, [str(number), "C"]) for number in range(2000)]


def test_only_line_feeds_and_carriage_returns_end_lines(table):
    odd = "\u2028\x85\x0b\x0c\x1c"
    _, records = table("a.csv", f"a,b\r\n1{odd},2\r3,4\n")
    assert records == [(2, [f"1{odd}", "2"]), (3, ["3", "4"])]
    assert table("a.jsonl", f'{{"a": "1{odd}"}}\r\n{{"a": "2"}}')[1] == [(1, [f"1{odd}"]), (2, ["2"])]


def test_json_lines_and_parquet_have_their_values_as_text(table):
    lines = '{"a": "x", "b": 1}\n\n{"b": 2.5, "c": [1, "é"]}\n'
    assert table("a.jsonl", lines) == ([*"abc"], [(1, ["x", "1", ""]), (3, ["", "2.5", '[1, "é"]'])])
    assert table("a.jsonl", r'{"a": "\ud800\ud83d\ude00"}')[1] == [(1, ["\ufffd😀"])]
    frame = pd.DataFrame({"a": ["é".encode(), b"\xff"]})
    assert table("a.parquet", frame.to_parquet())[1] == [(1, ["é"]), (2, ["\ufffd"])]
    frame = pd.DataFrame({"a": ["x", None], "b": [1.5, float("nan")], "c": [1, 2]})
    assert table("a.parquet", frame.to_parquet()) == ([*"abc"], [(1, ["x", "1.5", "1"]), (2, ["", "", "2"])])
    assert table("b.parquet", frame.rename(columns={"b": "c.b"}).to_parquet())[0] == ["a", "c.b", "c"]


def test_a_sheet_is_chosen_by_its_column_or_by_its_name(table, tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["Supplementary Table 3"])
    for title, shift in (("one", 0), ("two", 9)):
        sheet = book.create_sheet(title)
        first = [1 + shift, " C_x000D_\nC "]
        for row in (["Table S1"], [], ["ID", "SMILES"], first, [2, "=A4+1"], ["tile_x0041_", "_x0009_C"]):
            sheet.append(row)
    book.save(written := io.BytesIO())
    rows = [(4, ["1", " C\r\nC "]), (5, ["2", "=A4+1"]), (6, ["tile_x0041_", "\tC"])]  # formulas as text
    assert table("a.xlsx", written.getvalue(), "SMILES") == (["ID", "SMILES"], rows)
    assert table("a.xlsx", written.getvalue(), "SMILES", "two")[1][0] == (4, ["10", " C\r\nC "])
    assert table("a.xlsx.zip", zipped(written.getvalue(), ["a.xlsx"]), "SMILES")[1] == rows
    assert [sheet for sheet, _ in columns(tmp_path / "a.xlsx", 1)] == ["Sheet", "one", "two"]
    with pytest.raises(InputError, match=r"a\.xlsx: no sheet 'on' \(did you mean 'one'\?\); found 'Sheet', "):
        table("a.xlsx", written.getvalue(), sheet="on")


def test_a_hidden_sheet_is_read_only_by_its_name(table, tmp_path):
    book = openpyxl.Workbook()
    book.active.title, book.active.sheet_state = "old", "hidden"
    for title in ("data", "more"):
        book.create_sheet(title)
    for number, sheet in enumerate(book):
        sheet.append(["text"])
        sheet.append([f"  {number} "])
    book.save(path := tmp_path / "a.xlsx")
    assert table("a.xlsx", path.read_bytes()) == (["text"], [(2, ["  1 "])])
    assert table("a.xlsx", path.read_bytes(), sheet="old")[1] == [(2, ["  0 "])]
    assert [sheet for sheet, _ in columns(path, 1)] == ["data", "more"]
    assert describe_sheet(path) == ", sheet 'data' (--sheet chooses another: 'old', 'more')"


def test_only_an_apostrophe_that_pairflow_writes_is_left_out(table):
    fields = ["'=1", "''=1", "'-5", "'two", "'"]
    read = ["=1", "'=1", "'-5", "'two", "'"]
    _, records = table("a.csv", "\n".join(["text", *fields]))
    assert [field for _, [field] in records] == read


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv.zip", zipped(b"a", ["a.csv", "b"]), "expected one file in the archive, found 2: a.csv, b"),
        ("a.csv.zip", zipped(gzip.compress(b"a\n1\n"), ["a.csv.gz"]), ".* not compressed again, found a.csv"),
        ("a.csv.bz2", bz2.compress(b"a\n1\n")[:-9], "not a readable CSV file: Compressed file ended"),
        ("a.csv.zst", zstandard(b"a\n1\n" * 99)[:-9], "not a readable CSV file: "),
        ("a.csv.zst", zstandard((b"a" * 1023 + b"\n") * 2**15), "expected a file that unpacks to at most 1"),
        ("a.jsonl", '{"a": 1}\n[1]\n', "line 2: expected a JSON object, found '\\[1\\]'"),
        ("a.jsonl", '{"b": {"c": 1, "c": 1}}\n', "line 1: expected each name once .*, found 'c' 2 times"),
        ("a.parquet", b"PAR1", "not a readable Parquet file"),
        ("a.jsonl", "\n", "empty; expected a header line"),
        ("a.csv", "a;b\n", "no column 'c'; found 'a', 'b'"),
        ("a.xls", b"\xd0\xcf\x11\xe0", ".xls files are not read; save it as .xlsx in a spreadsheet program"),
        ("c.csv", "b,c\n1,2,\n1,2\n5,1,2\n", "line 4 has 3 fields, the header 2; quote fields that hold ','"),
    ],
)
def test_refusals(tmp_path, name, content, message):
    (path := tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=f"{name}: {message}"), open_table(path) as opened:
        list(opened.read("c" if path.suffix == ".csv" else opened.header[0]))


ROWS = "".join(f"{number},C,n{number}\n" for number in range(9))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (f'id,smiles,name\n1,C,x\n2,C,"open\n{ROWS}3,C,closed"\n4,C,x\n', (3, 13)),
        (f'id,smiles,name\n"{ROWS}3",C,x\n', (2, 11)),
        (f'id,smiles,name\n2,C,"open\n{ROWS}3,C",closed\n', (2, 12)),  # in another column
        ('smiles,name\nC,"open\nN,closed"\n', (2, 3)),
        ('smiles,name\nC,"a\nb"\nC,"a, b\nc, d"\n"C,\nN,",x\n', None),
        ('id,note,smiles\n1,"a,b\nc,\nd",C\n', None),
    ],
)
def test_stray_quotes_do_not_swallow_the_rows_between_them(table, content, lines):
    message = 'a.csv: line %d has a quote \\("\\) that closes in line %d, with rows in between; remove both'
    with pytest.raises(InputError, match=message % lines) if lines else nullcontext():
        table("a.csv", content)


def test_numbers_count_lines_or_rows(tmp_path):
    names = ("a.csv", "a.jsonl", "a.parquet", "a.XLSX")
    assert [tabular.unit_of(tmp_path / name) for name in names] == ["line", "line", "row", "row"]
