"""SDF files as vendors write them: names and numbers in data items, queries, lines that end in blanks."""

import pytest

from pairflow.errors import InputError
from pairflow.kinds.molecules.draft import _read_head
from pairflow.kinds.molecules.fields import QUERY
from pairflow.kinds.molecules.library import data_items, read_fields, read_rows
from pairflow.kinds.molecules.settings import NewLibrary

ATOM = "    0.0000    0.0000    0.0000 {:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n"


def record(symbol="N", bond=1, more="", items="", title=""):
    """A record of a carbon atom with a bond to another one."""
    counts = "  2  1  0  0  0  0  0  0  0  0999 V2000\n"
    block = f"{ATOM.format('C')}{ATOM.format(symbol)}  1  2  {bond}  0\n{more}"
    return f"{title}\n  own\n\n{counts}{block}M  END\n{items}$$$$\n"


@pytest.fixture
def read(tmp_path):
    def read(*records, column="smiles"):
        (tmp_path / "a.sdf").write_text("".join(records))
        return [(row.text, row.name, row.reason) for row in read_rows(tmp_path / "a.sdf", column)]

    return read


def test_queries_are_rejected_and_blanks_at_the_end_break_no_record(read):
    listed = "M  ALS   2  2 F F   Br  \n"
    unsaturated = "M  UNS  1   1   1\n"
    hydrogens = record().replace(
        "C   0  0  0  0", "C   0  0  0  1"
    )  # one column of the atom: without hydrogen
    assert read(hydrogens) == [("", "", QUERY)]
    queries = (("L", 1, listed), ("A", 1), ("Q", 1), ("N", 8), ("N", 5), ("N", 1, unsaturated))
    assert read(*(record(*query) for query in queries)) == [("", "", QUERY)] * len(queries)
    groups = read(record("R#", 1, "M  RGP  1   2   1\n"), record("*"), record().replace("END", "END  "))
    assert groups == [("[1*]C", "", ""), ("*C", "", ""), ("CN", "", "")]


def test_names_and_numbers_are_read_from_data_items(read, tmp_path):
    items = "> 25 <IDNUMBER> (7)\nZ1\n\n>  <pIC50>\n5.0\n\n> <note>\ntwo\nlines\n\n"
    records = record(items=items), record("O", title="own name", items="> <pIC50>\n6\n\n> <CAS>\n64-17-5\n")
    assert read(*records) == [("CN", "Z1", ""), ("CO", "own name", "")]
    assert [*read_fields(tmp_path / "a.sdf", "pIC50")] == [(1, "5.0", ""), (2, "6", "")]
    assert data_items(tmp_path / "a.sdf", 9)["note"] == ["two\nlines", ""]
    assert [name for _, name, _ in read(*records, column="CAS")] == ["", "64-17-5"]
    with pytest.raises(InputError, match="no data item 'x'"):
        read(*records, column="x")


def test_structures_are_those_of_the_records_whatever_column_is_chosen(read, tmp_path):
    assert read(record(items="> <SMILES>\nCCO\n\n"), column="SMILES") == [("CN", "CCO", "")]
    *_, title = _read_head(tmp_path / "a.sdf", NewLibrary(column="SMILES"))
    assert title == "SDF, the structures of its records, names in 'SMILES'"


def test_records_that_run_into_each_other_are_one_rejected_row(read):
    joined = record(title="first").removesuffix("$$$$\n") + record(title="second")
    reason = "several molecules in a record: a line $$$$ is missing"
    assert read(joined, record("O")) == [("first", "", reason), ("CO", "", "")]
