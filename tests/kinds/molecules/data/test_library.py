"""Files of molecules: how each reader treats good, odd and broken ones."""

import gzip
import io
import subprocess
import sys
import zipfile
from contextlib import nullcontext

import openpyxl
import pytest
from deadline import within
from rdkit import Chem
from rdkit.Chem import AllChem

from pairflow.data import tabular
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.library import (
    Row,
    find_field,
    format_of,
    holds_smiles,
    name_column,
    read_fields,
    read_rows,
    unit_of,
)


def columns(path, number):
    [(_, fields)] = tabular.columns(path, number)
    return fields


def read(path, column="smiles"):
    """The SMILES of a file, or the reasons why there is none."""
    return [row.reason or row.text for row in read_rows(path, column)]


@pytest.fixture
def written(tmp_path):
    """Write bytes or text under a name, packed if it ends in .gz; returns the path."""

    def write(name, content, pack=gzip.compress):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(pack(content) if name.endswith(".gz") else content)
        return tmp_path / name

    return write


def sdf(*smiles):
    """An SDF file with coordinates and a property, as RDKit writes it."""
    records = []
    for number, text in enumerate(smiles):
        molecule = Chem.MolFromSmiles(text)
        molecule.SetProp("_Name", f"mol{number}")
        AllChem.Compute2DCoords(molecule)
        records.append(Chem.MolToMolBlock(molecule) + "> <mass>\n12\n\n$$$$\n")
    return "".join(records)


def test_format_is_told_by_the_name():
    names = ["a.smi", "a.SMI.gz", "a.b.txt", "a.csv", "a.tsv.gz", "a.sdf", "a.sd"]
    assert [format_of(name) for name in names] == ["SMILES"] * 3 + ["CSV"] * 2 + ["SDF"] * 2
    assert (format_of("a.xlsx"), unit_of("a.xlsx")) == ("Excel", "row")
    for name in ("a.docx", "a.gz", "a"):
        with pytest.raises(InputError, match=rf"^{name}: unknown kind of file; expected a name .* \.smi, "):
            format_of(name)


@pytest.mark.parametrize(
    ("text", "field", "kind"),
    [
        ("CCO\nCCN a\n", (None, 0), "SMILES"),
        ("M0\tCCO\nM1\tCCN\n", (None, 1), "SMILES"),
        ("# all\nM 0;x;CCO\nM 1;x;CCN\n", (";", 2), "SMILES"),
        ("# all\nid;SMILES;y\na;CCO;1\nb;CCN;2\n", (";", 1), "CSV"),
        ("I came\nI saw\n", None, ""),  # RDKit would read I
        ("C G Am F\nC G\n", None, ""),
    ],
)
def test_content_tells_the_field_with_smiles_and_the_format_of_an_unknown_name(written, text, field, kind):
    path = written("a.dat", text)
    assert (find_field(path), holds_smiles(path)) == (field, bool(kind))
    with nullcontext() if kind else pytest.raises(InputError, match=r"a\.dat: unknown kind of file; "):
        assert format_of(path) == kind


NAMED = "CCO ethanol, absolute\n\n  c1ccccc1\tbenzene\nN\n   \nC1CC broken\n"
QUOTED = 'name,smiles\nethanol,"CCO\n"\nnothing\n\nNA,N\n'
MIXED = sdf("CCO", "CN").encode().replace(b"\n", b"\r\n", 9).replace(b"\n>", b"\r>")


@pytest.mark.parametrize(
    ("name", "content", "smiles"),
    [
        *((name, NAMED, ["CCO", "c1ccccc1", "N", "C1CC"]) for name in ("a.smi", "a.smi.gz", "a.txt")),
        *(
            ("a.smi", f"{header}CCO\nCN\n", ["CCO", "CN"])
            for header in ("smiles id\n", "SMILES\n", "Canonical_Smiles\tname\r\n", "")
        ),
        # comments, and a CX extension before the name
        ("a.smi", "# all\n#SMILES name\nCCO |r| a\nCN\n", ["CCO |r|", "CN"]),
        # the SMILES in another field, and tables by their content
        *(
            ("a.smi", text, ["CCO", "CCN", "x"])
            for text in ("M0 CCO b\nM1 CCN\nM2 x", "CCO,a\nCCN,b\nx,c\n", '"CCO","a"\n"CCN","b"\n"x","c"\n')
        ),
        ("a.txt", "id\tcanonical_smiles\tInChI\nM0\tCCO\tx\nM1\tCCN\tx\nM2\tx\ty\n", ["CCO", "CCN", "x"]),
        ("a.txt", "M0\tCCO\tx\nM1\tCCN\tx\nM2\tx\ty\n", ["CCO", "CCN", "x"]),
        ("a.jsonl", '{"smiles": "CCO", "y": 1}\n{"y": 2}\n', ["CCO", ""]),
        # line ends may be mixed
        ("a.smi", b"CCO a\r\nCN b\rC c\nCC\r\r\nN", ["CCO", "CN", "C", "CC", "N"]),
        ("a.csv", b"id,smiles\r\n1,CCO\r2,CN\n3,C", ["CCO", "CN", "C"]),
        ("a.sdf", MIXED, ["CCO", "CN"]),
        # a byte order mark
        ("a.smi", "\ufeffCCO \u00b5-ethanol\nCNC\n", ["CCO", "CNC"]),
        ("a.csv", "\ufeffsmiles,name\nCCO,\u00e9\n", ["CCO"]),
        ("a.csv", QUOTED, ["CCO\n", "", "N"]),
        ("a.csv", 'smiles,name\nC,"two\nlines"\nN,"a ""b"""\n', ["C", "N"]),
        ("a.tsv", 'smiles\ta,"b\nCCO\t1\n', ["CCO"]),
        ("a.csv", "id;smiles;mass\n1;CCO;1,5\n", ["CCO"]),
    ],
)
def test_good_and_odd_files_are_read(written, name, content, smiles):
    assert read(written(name, content)) == smiles


def test_columns_of_a_table(written):
    assert read(written("a.csv.gz", QUOTED), "name") == ["ethanol", "nothing", "NA"]
    table = columns(written("a.csv", "id, smiles\n1,C\n2\n3,N\n"), 2)
    assert table == {"id": ["1", "2"], "smiles": ["C", ""]}
    twice = written("a.csv", "id,smiles,smiles\n1,C,N\n")
    assert columns(twice, 9) == {"id": ["1"], "smiles": ["C"]}
    with pytest.raises(InputError, match=r"a\.csv: 2 columns are named 'smiles'; rename all but one$"):
        read(twice)


@pytest.mark.parametrize(
    ("name", "content", "numbered"),
    [
        ("a.smi.gz", "\nsmiles id\nC 1, a\n\n  \n N\t2", [(3, "C", "1, a"), (6, "N", "2")]),
        ("a.csv", "smiles,name\nC,1\n\nN\n", [(2, "C", "1"), (4, "N", "")]),
        ("a.csv", '\n\nsmiles,Mol ID\nC,"A\nB"\nN,2\r\n\r\n', [(4, "C", "A\nB"), (6, "N", "2")]),
        ("a.smi", 'CCN b\n"CCO" my "own"\n"C\n', [(1, "CCN", "b"), (2, "CCO", 'my "own"'), (3, '"C', "")]),
        ("a.smi", "CCO |$a;b$,r|  Z1 x\nCO a|b\n", [(1, "CCO |$a;b$,r|", "Z1 x"), (2, "CO", "a|b")]),
        ("a.cxsmiles", "smiles\tid\tType\nCCO |r|\tZ1\tS\n", [(2, "CCO |r|", "Z1")]),
        ("a.smi", "M0 CCO |r| x\nM1 CCN y\n", [(1, "CCO |r|", "M0"), (2, "CCN", "M1")]),
        ("a.smi", "M 0,CCO\nM 1,CCN\n", [(1, "CCO", "M 0"), (2, "CCN", "M 1")]),
    ],
)
def test_rows_have_names_and_are_numbered_as_an_editor_numbers_lines(written, name, content, numbered):
    path = written(name, content)
    assert list(read_rows(path)) == [Row(*row) for row in numbered]
    assert unit_of(path) == "line"


def test_the_column_of_names_is_found():
    for header, column in (
        (["id", "smiles", "Name"], "Name"),
        (["smiles", "Catalog ID", "code"], "Catalog ID"),
        (["smiles", "zinc_id"], "zinc_id"),
        (["#code", "smiles"], "#code"),
        (["smiles", "MoleculeName"], "MoleculeName"),
        (["smiles", "acid", "solid", "mass"], None),
    ):
        assert name_column(header, "smiles") == column


@pytest.mark.parametrize("name", ["a.sdf", "a.sdf.gz"])
def test_sdf_keeps_stereochemistry_charges_and_isotopes(written, name):
    smiles = ["C[C@H](N)C(=O)O", "F/C=C/F", "[13CH4]", "CC(=O)[O-].[Na+]"]
    actual = read(written(name, sdf(*smiles)))
    assert list(map(Chem.CanonSmiles, actual)) == list(map(Chem.CanonSmiles, smiles))


def test_broken_records_of_an_sdf_are_rows_with_a_reason(written):
    good = sdf("CCO", "CN", "CC")
    broken = good.replace("  2  1", "  9  9", 1).replace(" N ", " Xx")  # counts line; no such element
    assert broken != good
    first, second, third = read(written("a.sdf", broken + "\n\n"))
    assert (third, second) == ("CC", "broken record")
    assert read(written("a.sdf", good[: good.rindex("M  END") - 30])) == ["CCO", "CN", "broken record"]
    assert first in ("CCO", "broken record")


PACKED = gzip.compress(b"C\n" * 9, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.sdf", b"", "empty; copy or download"),
        ("a.smi", b"smiles\n\n", "empty; expected a SMILES"),
        ("a.csv", b"SMILES,mass\nC,16\n", "no column 'smiles'; found 'SMILES', 'mass'"),
        ("a.smi", "CCO\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        ("a.smi", b"C\r\n" * 5000 + b"C \xd6l\n", "expected UTF-8 text, found byte 0xd6 in line 5001; save"),
        ("a.csv", b"smiles,y\nC,\xd6l\nN,\xc4l\n", "expected UTF-8 text, found byte 0xd6 in line 2; save it"),
        ("a.sdf", sdf("C").encode() + b"> <y>\n\xb5\n", "expected UTF-8 text, found byte 0xb5 in line 12;"),
        ("a.smi", b"C" * 1_000_001, "a line of over 1,000,000 characters: not a text file"),
        ("a.sdf", b"CCO\n" * 100_002, r"no end of a record \(\$\$\$\$\) up to line 100001: not an SDF file"),
        ("a.csv", b'\n\nsmiles,name\nC,x\nN,"a" b\n', "the record in line 5 has a stray quote"),
        ("a.smi.gz", PACKED[:-9], "not a readable SMILES file: Compressed file ended"),
        ("a.xlsx", b"smiles\nC\n", "not a readable Excel file: File is not a zip file"),
    ],
)
def test_refusals(written, name, content, message):
    path = written(name, content, pack=bytes)
    with pytest.raises(InputError, match=f"{name}: {message}"):
        read(path)
    path.unlink()
    with pytest.raises(InputError, match=f"{name}: no such file$"):
        read(path)
    path.mkdir()
    with pytest.raises(InputError, match=f"{name}: is a folder, a pipe or a device"):
        read(path)


def test_records_without_a_line_and_molecules_that_are_too_large_are_rejected(written):
    assert read(written("a.sdf", "$$$$\n$$$$\n")) == ["broken record"] * 2
    atoms = "".join(f"M  V30 {number} C {number} 0 0 0\n" for number in range(1, 5001))
    block = "M  V30 BEGIN CTAB\nM  V30 COUNTS 5000 0 0 0 0\nM  V30 BEGIN ATOM\n"
    block += f"{atoms}M  V30 END ATOM\n"
    head = "\n\n\n  0  0  0     0  0            999 V3000\n"
    large = written("b.sdf", f"{head}{block}M  V30 END CTAB\nM  END\n$$$$\n")
    assert read(large) == ["over 4,096 atoms"]


NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@pytest.fixture
def excel(tmp_path):
    """Write an Excel file whose sheet has these parts as its XML, after a row with the header."""

    def write(*rows, dimension="A1"):
        written, path = io.BytesIO(), tmp_path / "a.xlsx"
        openpyxl.Workbook().save(written)
        start = f'<worksheet xmlns="{NAMESPACE}"><dimension ref="{dimension}"/><sheetData>{cell("smiles")}'
        with zipfile.ZipFile(written) as book, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name in book.namelist():
                sheet = name.endswith("sheet1.xml")
                parts = (start, *rows, "</sheetData></worksheet>") if sheet else (book.read(name).decode(),)
                packed.writestr(name, "".join(parts))
        return path

    return write


def cell(text, row="", column=""):
    return f'<row{row}><c{column} t="inlineStr"><is><t>{text}</t></is></c></row>'


IMPLAUSIBLE = r"expected a file that unpacks to at most 100 times its [\d,]+ bytes, found [\d,]+ or more$"
TOO_LONG = "expected at most 1,048,576 rows and 33,554,432 cells in a sheet, found more; save it as"


@pytest.mark.parametrize(
    ("rows", "text"),
    [((cell("C") * 10**6,), IMPLAUSIBLE), ((cell("CCO", ' r="2000000000"'),), TOO_LONG)],
    ids=["rows", "gap"],
)
def test_an_excel_file_that_unpacks_to_too_much_is_refused(excel, rows, text):
    with within(60), pytest.raises(InputError, match=f"a.xlsx: {text}"):
        read(excel(*rows))


def test_an_excel_sheet_of_too_many_cells_is_refused(excel, monkeypatch):
    """Each row claims the last column of Excel."""
    monkeypatch.setattr(tabular, "_MOST_CELLS", 2**15)
    assert len(read(excel(cell("C", column=' r="XFD1"')))) == 1
    with pytest.raises(InputError, match="expected at most 1,048,576 rows and 32,768 cells"):
        read(excel(*[cell("C", column=f' r="XFD{row}"') for row in (2, 3, 4)]))


def test_an_excel_sheet_is_as_large_as_its_cells_and_not_as_it_says(excel):
    with within(60):
        path = excel(cell("CCO", ' r="5000"'), dimension="A1:XFD1048576")
        assert list(read_rows(path)) == [Row(5000, "CCO")]
        assert list(read_rows(excel(cell("CCO")))) == [Row(2, "CCO")]


def test_a_gzipped_file_that_unpacks_to_too_much_is_refused(written):
    with pytest.raises(InputError, match=rf"a\.smi\.gz: {IMPLAUSIBLE}"):
        read(written("a.smi.gz", f"{'C' * 1023}\n" * 2**15))
    assert len(read(written("b.smi.gz", f"{'C' * 1023}\n" * 2**13))) == 2**13  # 8 MiB, at any ratio


def test_memory_does_not_grow_with_the_file(written, capsys):
    """100,000 lines, 8 MB unpacked, in a process of its own: the reader's own peak stays below 2 MB."""
    line = "CC(C)Cc1ccc(cc1)C(C)C(=O)O {} " + "name " * 9 + "\n"
    assert len(list(read_rows(written("a.smi", "CCO\n" * 1000), progress=True))) == 1000
    assert "100%" in capsys.readouterr().err  # the bar counts all bytes
    path = written("long.smi.gz", "".join(line.format(number) for number in range(100_000)))
    code = (
        "import sys, tracemalloc; from pairflow.kinds.molecules.data.library import read_rows as rows; "
        "next(rows(sys.argv[1])); "
        "tracemalloc.start(); print(sum(1 for _ in rows(sys.argv[1])), tracemalloc.get_traced_memory()[1])"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    number, peak = map(int, run.stdout.split())
    assert number == 100_000
    assert peak < 2**21


def test_a_row_with_more_fields_than_the_header_is_rejected(tmp_path):
    (path := tmp_path / "a.csv").write_text("id,smiles,x\n1,C,5.1\n2,CC,5,1\n3,CCC,5.1,\n")
    reason = "4 fields, the header 3; quote fields that hold ','"
    rows = [Row(2, "C", "1"), Row(3, "CC", "2", reason), Row(4, "CCC", "3")]
    assert list(read_rows(path)) == rows
    assert [*tabular.columns(path, 3)] == [(None, {"id": [*"13"], "smiles": ["C", "CCC"], "x": ["5.1"] * 2})]
    assert list(read_fields(path, "x")) == [(2, "5.1", ""), (3, "", reason), (4, "5.1", "")]
    with pytest.raises(InputError, match=r"a\.csv: line 3 has 4 fields, the header 3; quote"):
        list(read_fields(path, "x", strict=True))
