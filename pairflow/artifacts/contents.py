"""Checks the tables that steps read: which columns a kind of table has, and which values these may hold.

A table with valid metadata may still come from another program and hold anything. Every check works on whole
columns, so that it takes a few milliseconds per million tokens.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pairflow.errors import InputError
from pairflow.files import Json
from pairflow.limits import MAX_VOCABULARY

_MOST = 2**31 - 1  # the largest count, because metric rows have 32 bits for it
_MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Column:
    """The values that a column may hold: single values, or lists of one length.

    Attributes:
        noun: what messages call the values.
        fits: a function that says whether values may have an Arrow type.
        width: for lists, which number is their length: `length` (in the metadata), `rows` (of the table),
            `properties` (their number in the condition), or a parameter in the metadata.
        lowest, highest: the bounds of numbers; tokens are also below K.
        finite: whether numbers must be finite.
        nulls: whether values may be missing.
        optional: whether the column may be missing.
    """

    noun: str
    fits: Callable[[pa.DataType], bool]
    width: str | None = None
    lowest: int | None = None
    highest: int | None = None
    finite: bool = True
    nulls: bool = False
    optional: bool = False

    @property
    def one(self) -> str:
        """What messages call a single valid value."""
        if self.highest is not None:
            return f"{'a token' if self.width else 'an integer'} in {self.lowest}..{self.highest}"
        return "a number" if self.width else self.noun if self.noun == "text" else f"one of {self.noun}"


def _is_real(kind: pa.DataType) -> bool:
    return types.is_float32(kind) or types.is_float64(kind)  # Arrow cannot compare float16


def _is_number(kind: pa.DataType) -> bool:
    return types.is_integer(kind) or _is_real(kind)


TEXT = Column("text", lambda kind: types.is_string(kind) or types.is_large_string(kind))
NUMBER = Column("finite numbers", _is_number)
MEASURED = Column("numbers", _is_number, finite=False, nulls=True)  # metrics may be missing
COMPUTED = replace(NUMBER, nulls=True)  # properties, which some molecules lack
_COUNT = Column("integers", types.is_integer, lowest=0, highest=_MOST)
_TOKENS = Column("integers", types.is_integer, width="length", lowest=0)
_VECTORS = Column("finite float32 numbers", types.is_float32, width="length")
_FLOATS = Column("finite numbers", _is_real)
_SQUARE = replace(_FLOATS, width="rows")
_LABEL = Column("integers", types.is_integer, nulls=True, optional=True)
_LABELS = Column("finite float32 numbers", types.is_float32, width="properties", lowest=0, optional=True)
_CLASSES = {"label": _LABEL, "labels": _LABELS}
# No search for potentials ends below -2000, and the exponentials of such potentials would be 0.
_POTENTIAL = Column("integers", types.is_integer, lowest=-2000, highest=0, optional=True)
_PAIRS = {"x0": _TOKENS, "x1": _TOKENS}
_ENDS = {"target": replace(_COUNT, optional=True), "moved": replace(_FLOATS, lowest=0, optional=True)}
_VECTOR_PAIRS = {"x0": _VECTORS, "x1": _VECTORS, **_ENDS, "potential": _POTENTIAL}
_MAYBE_TEXT = replace(TEXT, nulls=True)
_TRIALS = {"trial": _COUNT, "sample": replace(_COUNT, optional=True)}
_MOMENTS = {"mean": _FLOATS, "covariance": _SQUARE}
_HELD_MOMENTS = {f"held_{name}": column for name, column in _MOMENTS.items()}
_FINGERPRINT = Column("256 bytes", lambda kind: kind == pa.binary(256))
_CLASS_SHARES = ("likelier_in_class", "likelier_by_chance", "likelier_rows")
_RATES = dict.fromkeys(
    ("learning_rate", "seconds", "validation_nll", *_CLASS_SHARES), replace(MEASURED, optional=True)
)

COLUMNS: dict[str, dict[str, Column]] = {
    "tokens": {"tokens": _TOKENS, **_CLASSES},
    "pairs": {**_PAIRS, **_CLASSES, "potential": _POTENTIAL},
    "shard of pairs": _PAIRS,
    "samples": {"tokens": _TOKENS, **_TRIALS},
    "vectors": {"values": _VECTORS},
    "vector pairs": _VECTOR_PAIRS,
    "shard of vector pairs": _VECTOR_PAIRS,
    "vector samples": {"values": _VECTORS, **_TRIALS, "energy": _FLOATS, "straightness": _FLOATS},
    "known molecules": {"hash": Column("hashes", types.is_uint64)},
    "smiles": {"smiles": TEXT, "split": TEXT, "name": replace(_MAYBE_TEXT, optional=True)},
    "norms": {"what": TEXT, "name": TEXT, "value": NUMBER},
    "training molecules": {"smiles": TEXT, "scaffold": TEXT, "fingerprint": _FINGERPRINT},
    "metrics": {
        **dict.fromkeys(("method", "evaluation"), _MAYBE_TEXT),
        "metric": TEXT,
        **dict.fromkeys(("value", "nfe"), MEASURED),
        **dict.fromkeys(("trial", "seed", "samples"), replace(MEASURED, optional=True)),
        **dict.fromkeys(("reference", "extractor"), replace(_MAYBE_TEXT, optional=True)),
    },
    "timings": {
        "step": TEXT,
        "seconds": MEASURED,
        **dict.fromkeys(("method", "device"), replace(_MAYBE_TEXT, optional=True)),
        "peak_memory_mb": replace(MEASURED, optional=True),
    },
    "training log": {"iteration": NUMBER, "loss": MEASURED, **_RATES},
    "property histograms": {
        "property": TEXT,
        **dict.fromkeys(("low", "high"), replace(NUMBER, finite=False)),  # the outer bins have no end
        **dict.fromkeys(("samples", "training"), NUMBER),
    },
    "ChemNet statistics": _MOMENTS,
    "reference": {**_MOMENTS, **_HELD_MOMENTS, "features": replace(_FLOATS, width="count", optional=True)},
}

_FACTS: dict[str, tuple[type | UnionType, str]] = {  # the type of each entry of the metadata, also in words
    "kind": (str, "a text"),
    **dict.fromkeys(("vocabulary", "data", "split"), (str | None, "a text or null")),
    **dict.fromkeys(("parameters", "inputs"), (Mapping, "names and values")),
}
_Parameters = Mapping[str, type[str] | tuple[int, int]]  # each is a text, or in (lowest, highest)
_LINEAGE: _Parameters = {"method": str, "nfe": (1, _MOST), "seed": (0, _MOST_SEED), "samples": (1, _MOST)}
_COUPLED: _Parameters = {"coupling": str}
_SHARD: _Parameters = {**_COUPLED, "of": (1, _MOST)}
_PARAMETERS: dict[str, _Parameters] = {  # that a file of each kind has
    "pairs": _COUPLED,
    "vector pairs": _COUPLED,
    "shard of pairs": _SHARD,
    "shard of vector pairs": _SHARD,
    "samples": _LINEAGE,
    "vector samples": _LINEAGE,
    "reference": {"extractor": str, "count": (4, _MOST)},
    "ChemNet statistics": {"count": (1, _MOST)},
}
_MAYBE_EMPTY = ("known molecules", "metrics", "timings", "samples", "property histograms")


def _require_metadata(path: Path, facts: Json) -> None:
    """Raise InputError unless the metadata (`facts`) have valid types, and sizes that fit together."""
    for name, (kind, expected) in _FACTS.items():
        if not isinstance(facts[name], kind):
            raise InputError(f"{path}: {name}: expected {expected}, found {facts[name]!r}")
    for name, value in facts["inputs"].items():
        if not isinstance(value, str):
            raise InputError(f"{path}: inputs: {name}: expected a hash, found {value!r}")
    length, size, shape = (facts[name] for name in ("length", "vocabulary_size", "shape"))
    kind_columns = COLUMNS.get(facts["kind"], {}).values()
    if length is not None or _TOKENS in kind_columns or _VECTORS in kind_columns:
        _require_integer(f"{path}: N", length, 1, _MOST)
    if size is not None or _TOKENS in kind_columns:
        _require_integer(f"{path}: K", size, 2, MAX_VOCABULARY)
    for name in ("padding", "mask"):
        if facts[name] is not None:
            _require_integer(f"{path}: {name}", facts[name], 0, (size or 0) - 1)
    sizes = isinstance(shape, list) and len(shape) == 3 and all(type(n) is int and n > 0 for n in shape)
    if shape is not None and not (sizes and math.prod(shape) == length):
        raise InputError(f"{path}: shape: expected C, H, W of {length} pixel values, found {shape!r}")


def require_contents(path: Path, table: pa.Table, facts: Json, row_count: int | None = None) -> None:
    """Raise InputError, with column and row, unless the metadata (`facts`) are valid and a table fits them.

    `row_count` is the number of rows of a file if only its columns were read, into an empty `table`.
    """
    _require_metadata(path, facts)
    row_count = len(table) if row_count is None else row_count
    kind, parameters = facts["kind"], facts["parameters"]
    for name, expected in _PARAMETERS.get(kind, {}).items():
        location, value = f"{path}: parameter '{name}'", parameters.get(name)
        if isinstance(expected, tuple):
            _require_integer(location, value, *expected)
        elif not isinstance(value, str):
            raise InputError(f"{location}: expected a text, found {value!r}")
    widths = {**parameters, "rows": row_count, "length": facts["length"]}
    widths["properties"] = len(facts.get("condition") or ())
    require_columns(path, table, COLUMNS.get(kind, {}), kind, widths, facts["vocabulary_size"])
    if kind == "known molecules":  # searched by bisection, so that hashes must ascend
        hashes = table["hash"]
        row = pc.index(pc.less_equal(hashes[1:], hashes[:-1]), True).as_py() + 1
        if row:
            wrong = f"expected more than {hashes[row - 1]}, found {hashes[row]}"
            raise InputError(f"{path}: column 'hash': row {row}: {wrong}")
    _require_row_count(path, row_count, facts)


def require_columns(
    path: Path,
    table: pa.Table,
    columns: Mapping[str, Column],
    kind: str,
    widths: Json | None = None,
    vocabulary_size: int | None = None,
) -> None:
    """Raise InputError, with the row and the position, unless the table has these columns, with values that
    they allow.

    `kind` is the kind of the table, for messages. `widths` has the lengths of lists by the names in
    `Column.width`; tokens are below `vocabulary_size`.
    """
    for name, column in columns.items():
        count = table.column_names.count(name)
        if not count and column.optional:
            continue
        if count != 1:
            number = "no column" if not count else f"{count} columns"
            raise InputError(f"{path}: {number} '{name}', which a table of {kind} has")
        if column is _TOKENS:
            column = replace(column, highest=(vocabulary_size or 1) - 1)
        width = (widths or {})[column.width] if column.width else 0
        _require_values(f"{path}: column '{name}'", table[name], column, width, kind)


def _require_values(location: str, values: pa.ChunkedArray, column: Column, width: int, kind: str) -> None:
    """Raise InputError unless each row is a value that `column` allows, or a list of `width` such values. The
    message begins with `location`, and names the `kind` of table."""
    # A column in which all values are missing has the type null.
    if types.is_null(values.type) and (column.nulls or not len(values)) and not column.width:
        return
    if not (types.is_fixed_size_list(values.type) if column.width else column.fits(values.type)):
        raise InputError(f"{location} cannot be of type {values.type} in {kind}")
    if not column.width:
        if wrong := _first_wrong(values, column):
            raise InputError(f"{location}: row {wrong[0]}: expected {column.one}, found {wrong[1]}")
        return
    expected = f"expected {width} {column.noun}"
    if values.type.list_size != width or not column.fits(values.type.value_type):
        raise InputError(f"{location}: {expected} in each row, found {values.type}")
    if values.null_count:
        raise InputError(f"{location}: row {pc.index(values.is_null(), True)}: {expected}, found null")
    if wrong := _first_wrong(pc.list_flatten(values), column):
        row, position = divmod(wrong[0], width)
        mistake = f"expected {column.one}, found {wrong[1]}"
        raise InputError(f"{location}: row {row}, position {position}: {mistake}")


def _first_wrong(values: pa.ChunkedArray, column: Column) -> tuple[int, object] | None:
    """Return the index and the value of the first entry that `column` does not allow, or None."""
    wrong = [values.is_null()] if values.null_count and not column.nulls else []
    if _is_number(values.type):
        low, high = (end.as_py() for end in pc.min_max(values).values())  # None if there is no value
        if column.finite and _is_real(values.type):
            wrong.append(pc.invert(pc.is_finite(values)))
        if column.lowest is not None and low is not None and low < column.lowest:
            wrong.append(pc.less(values, column.lowest))
        if column.highest is not None and high is not None and high > column.highest:
            wrong.append(pc.greater(values, column.highest))
    indices = [index for flags in wrong if (index := pc.index(flags, True).as_py()) >= 0]
    return (min(indices), values[min(indices)]) if indices else None


def _require_row_count(path: Path, rows: int, facts: Json) -> None:
    """Raise InputError if a table that may not be empty has no rows, or if the number `rows` is not what the
    metadata (`facts`) say."""
    kind, parameters = facts["kind"], facts["parameters"]
    held_out = facts["split"] == "validation" and kind == "tokens"  # may be empty
    if not rows and kind in COLUMNS and kind not in _MAYBE_EMPTY and not held_out:
        raise InputError(f"{path}: holds no rows")
    expected = None
    if kind in ("samples", "vector samples") and type(parameters.get("trials")) is int:
        expected = parameters["samples"] * parameters["trials"]
    if kind.startswith("shard of "):
        span, total = parameters.get("rows"), parameters["of"]
        if not isinstance(span, list) or len(span) != 2 or any(type(row) is not int for row in span):
            raise InputError(f"{path}: parameter 'rows': expected the first row and the end, found {span!r}")
        if not 0 <= span[0] < span[1] <= total:
            raise InputError(f"{path}: parameter 'rows': expected rows in 0..{total}, found {span}")
        expected = span[1] - span[0]
    if expected not in (None, rows):
        raise InputError(f"{path}: expected {expected} rows, as its metadata say, found {rows}")


def _require_integer(location: str, value: object, lowest: int, highest: int) -> None:
    if type(value) is not int or not lowest <= value <= highest:  # isinstance would accept a bool
        raise InputError(f"{location}: expected an integer in {lowest}..{highest}, found {value!r}")
