"""Tables with the right metadata and the wrong contents are refused, with the place."""

from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from pairflow.artifacts import Metadata, read_metadata, read_table, write_table
from pairflow.artifacts.contents import COMPUTED, require_columns
from pairflow.errors import InputError

GOOD = [[0, 1, 2], [3, 4, 5]]
PARAMETERS = {"coupling": "own", "method": "udlm", "nfe": 1, "seed": 0, "samples": 2}


def column(rows, kind=None, length=3):
    return pa.array(rows, pa.list_(kind or pa.uint8(), length))


@pytest.fixture
def read(tmp_path):
    """Write a table with intact metadata, and read it as a step does."""

    def read(kind, columns, **metadata):
        path = tmp_path / "table.parquet"
        sizes = {"length": 3, "vocabulary_size": 6, "parameters": PARAMETERS, **metadata}
        write_table(path, pa.table(columns), Metadata(kind=kind, **sizes))
        return read_table(path, kind)

    return read


def test_good_tables_are_read(read):
    read("tokens", {"tokens": column(GOOD)}, shape=[1, 1, 3], padding=5, mask=0)
    read("tokens", {"tokens": column(GOOD), "label": pa.array([1, 2])})
    read("pairs", {"x0": column(GOOD), "x1": column(GOOD, pa.int32())})
    numbers = pa.array([0, 1], pa.int32())
    read("samples", {"tokens": column(GOOD), "trial": numbers, "sample": numbers})
    read("tokens", {"tokens": column([])}, split="validation")


def test_columns_are_checked_where_only_metadata_are_read(tmp_path):
    path = tmp_path / "table.parquet"
    rows = column([[0, 1]], length=2)
    write_table(path, pa.table({"tokens": rows}), Metadata(kind="tokens", length=3, vocabulary_size=6))
    with pytest.raises(InputError, match="expected 3 integers in each row"):
        read_metadata(path)


NAN = column([[0, 1, np.nan]], pa.float32())
BYTES = pa.array([b"1" * 128], pa.binary(128))
FINGERPRINTS = {"smiles": pa.array(["C"]), "scaffold": pa.array([""]), "fingerprint": BYTES}
NULLS = dict.fromkeys(("method", "evaluation", "nfe", "value", "metric"), pa.nulls(1))
SOUND = {"tokens": column(GOOD), "x0": column(GOOD), "x1": column(GOOD), "trial": pa.array([0, 0])}
LATER = pa.chunked_array([column(GOOD), column([[0, 1, 9]])])
SHARD = "shard of pairs"


def rows(values, kind=None, length=3):
    return {"tokens": column(values, kind, length)}


def facts(**changes):
    return {"parameters": {**PARAMETERS, **changes}}


@pytest.mark.parametrize(
    ("kind", "columns", "metadata", "text"),
    [
        ("tokens", rows([[0, 1, 2], [3, 6, 7]]), {}, "row 1, position 1: expected a token in 0..5, found 6"),
        ("tokens", rows([[0, -1, 2]], pa.int32()), {}, "row 0, position 1: expected a token in 0..5, fo"),
        ("tokens", {"tokens": LATER}, {}, "row 2, position 2: expected a token in 0..5, found 9"),
        ("tokens", rows([[0, 1]], length=2), {}, "expected 3 integers in each row"),
        ("tokens", rows([[0, None, 2]]), {}, "row 0, position 1: expected a token in 0..5, found None"),
        ("tokens", rows([[0, 1, 2], None]), {}, "row 1: expected 3 integers, found null"),
        ("tokens", {"tokens": pa.array(GOOD, pa.list_(pa.uint8()))}, {}, "cannot be of type list<"),
        ("tokens", {"tokens": pa.array(["CCO"])}, {}, "cannot be of type string in tokens"),
        ("tokens", rows([]), {}, "holds no rows"),
        ("tokens", SOUND, {"vocabulary_size": 10**9}, "K: expected an integer in 2..65536, found 1000000000"),
        ("tokens", SOUND, {"vocabulary_size": None}, "K: expected an integer in 2..65536, found None"),
        ("tokens", SOUND, {"length": 4}, "expected 4 integers in each row"),
        ("tokens", SOUND, {"length": True}, ", found True"),
        ("tokens", SOUND, {"data": 3}, "data: expected a text or null, found 3"),
        ("tokens", SOUND, {"parameters": [1]}, "parameters: expected names and values, found [1]"),
        ("tokens", SOUND, {"inputs": {"data": 3}}, "inputs: data: expected a hash, found 3"),
        ("tokens", SOUND, {"shape": [1, 2, 2]}, "shape: expected C, H, W of 3 pixel values, found [1, 2, 2]"),
        ("tokens", SOUND, {"mask": -1}, "mask: expected an integer in 0..5, found -1"),
        ("pairs", SOUND, {"parameters": {}}, "parameter 'coupling': expected a text, found None"),
        ("pairs", {"x0": column(GOOD)}, {}, "no column 'x1', which a table of pairs has"),
        ("samples", SOUND, facts(nfe="1"), "parameter 'nfe': expected an integer in "),
        ("samples", SOUND, facts(trials=2), "expected 4 rows, as its metadata say, found 2"),
        ("samples", rows(GOOD) | {"trial": pa.array([0, -1])}, {}, "row 1: expected an integer in 0.."),
        (SHARD, SOUND, facts(of=4, rows=[1, 2]), "expected 1 rows, as its metadata say, found 2"),
        (SHARD, SOUND, facts(of=4, rows=[3, 5]), "rows in 0..4, found [3, 5]"),
        ("vectors", {"values": NAN}, {}, "'values': row 0, position 2: expected a number, found nan"),
        ("vectors", {"values": column(GOOD, pa.float64())}, {}, "expected 3 finite float32 numbers in each"),
        ("known molecules", {"hash": pa.array([1, 5, 5], pa.uint64())}, {}, "row 2: expected more than 5"),
        ("metrics", NULLS, {}, "column 'metric' cannot be of type null in metrics"),
        ("smiles", {"smiles": pa.array(["C", None])}, {}, "row 1: expected text, found None"),
        ("training molecules", FINGERPRINTS, {}, "'fingerprint' cannot be of type fixed_size_binary"),
        (
            "timings",
            {"step": ["pair"], "seconds": pa.array([0.5], pa.float16())},
            {},
            "cannot be of type half",
        ),
    ],
)
def test_what_cannot_be_in_a_table_of_its_kind_is_refused(read, kind, columns, metadata, text):
    with pytest.raises(InputError, match=r"table\.parquet: ") as raised:
        read(kind, columns, **metadata)
    assert text in str(raised.value)


def test_a_file_without_permission_is_not_called_damaged(tmp_path, monkeypatch):
    """Root may read every file: the system's refusal is a mock."""
    path = tmp_path / "table.parquet"
    write_table(path, pa.table({"tokens": column(GOOD)}), Metadata("tokens", 3, 6))
    for error, said in (
        (PermissionError(13, "Permission denied"), "cannot be read: Permission denied"),
        (pa.ArrowMemoryError("malloc failed"), "needs more memory than there is: malloc failed"),
    ):
        monkeypatch.setattr(pa.parquet, "ParquetFile", Mock(side_effect=error))
        with pytest.raises(InputError, match=rf"table\.parquet: {said}$"):
            read_table(path)


def test_a_property_may_be_missing_but_not_infinite(tmp_path):
    path = tmp_path / "molecules.parquet"
    require_columns(path, pa.table({"sa": [1.0, None]}), {"sa": COMPUTED}, "training molecules")
    with pytest.raises(InputError, match="column 'sa': row 1: expected one of finite numbers, found inf"):
        require_columns(path, pa.table({"sa": [1.0, np.inf]}), {"sa": COMPUTED}, "training molecules")
