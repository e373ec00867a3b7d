"""The contents of tables that our steps read: which columns a kind of table has, and what tokens may be.

A table may come from another program, with all metadata right and anything inside.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from pairflow.errors import InputError
from pairflow.limits import MAX_VOCABULARY

Check = Callable[[pa.DataType], bool]

_TOKENS = {"tokens": ["tokens"], "samples": ["tokens"], "pairs": ["x0", "x1"], "shard of pairs": ["x0", "x1"]}
_VECTORS = {
    "vectors": ["values"],
    "vector samples": ["values"],
    "vector pairs": ["x0", "x1"],
    "shard of vector pairs": ["x0", "x1"],
}


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind)


def _is_number(kind: pa.DataType) -> bool:
    return types.is_integer(kind) or types.is_floating(kind)


def _any(kind: pa.DataType) -> bool:
    return True


_COLUMNS: dict[str, dict[str, Check]] = {
    "samples": {"trial": types.is_integer},
    "vector samples": {
        "trial": types.is_integer,
        "energy": types.is_floating,
        "straightness": types.is_floating,
    },
    "known molecules": {"hash": types.is_uint64},
    "smiles": {"smiles": _is_text, "split": _is_text},
    "training molecules": {"smiles": _is_text, "fingerprint": lambda kind: kind == pa.binary(256)},
    "metrics": {"method": _any, "metric": _is_text, "value": _is_number, "evaluation": _any, "nfe": _any},
    "timings": {"step": _any, "seconds": _any},
    "training log": {"iteration": _is_number, "loss": _is_number},
    "property histograms": dict.fromkeys(("low", "high", "samples", "training"), _is_number),
    "transformation": {"gamma": types.is_floating, "alpha": types.is_floating},
    "reference": {"mean": types.is_floating, "covariance": types.is_fixed_size_list},
}


def require_contents(path: Path, table: pa.Table, kind: str, facts: dict[str, Any]) -> None:
    """InputError, with the place, unless the table has the columns of its kind and tokens below K.

    `facts` are its metadata: `length` (N), `vocabulary_size` (K), `shape`, `mask`, `padding` and `split`.
    """
    rows = {**_TOKENS, **_VECTORS}.get(kind, [])
    columns = dict.fromkeys(rows, types.is_fixed_size_list) | _COLUMNS.get(kind, {})
    for name, fits in columns.items():
        if name not in table.column_names:
            raise InputError(f"{path}: no column '{name}', which a table of {kind} has")
        if not fits(table[name].type):
            raise InputError(f"{path}: column '{name}' cannot be of type {table[name].type} in {kind}")
    for name in _VECTORS.get(kind, []):
        _require_numbers(f"{path}: column '{name}'", table[name], facts["length"])
    if kind not in _TOKENS:
        return
    _require_sizes(path, **{key: fact for key, fact in facts.items() if key != "split"})
    if not len(table) and kind != "samples" and facts["split"] != "validation":  # perhaps nothing is held out
        raise InputError(f"{path}: holds no rows")
    for name in _TOKENS[kind]:
        _require_tokens(f"{path}: column '{name}'", table[name], facts["length"], facts["vocabulary_size"])


def _require_sizes(path: Path, length: Any, vocabulary_size: Any, shape: Any, **symbols: Any) -> None:
    """InputError unless the sizes in the metadata of token rows are possible."""
    if type(vocabulary_size) is not int or not 2 <= vocabulary_size <= MAX_VOCABULARY:
        raise InputError(f"{path}: K: expected an integer in 2..{MAX_VOCABULARY}, found {vocabulary_size!r}")
    for name, symbol in symbols.items():
        if symbol is not None and (type(symbol) is not int or not 0 <= symbol < vocabulary_size):
            raise InputError(f"{path}: {name}: expected one of 0..{vocabulary_size - 1}, found {symbol!r}")
    if shape is None:
        return
    sizes = isinstance(shape, list) and len(shape) == 3 and all(type(n) is int and n > 0 for n in shape)
    if not sizes or math.prod(shape) != length:
        raise InputError(f"{path}: shape: expected C, H, W of {length} pixel values, found {shape!r}")


def _require_numbers(place: str, column: pa.ChunkedArray, length: Any) -> None:
    """InputError unless each row holds d finite numbers in float32, and there is a row."""
    if column.type.list_size != length or not types.is_float32(column.type.value_type):
        raise InputError(f"{place}: expected {length} float32 numbers in each row, found {column.type}")
    if not len(column):
        raise InputError(f"{place}: holds no rows")
    for chunk in column.chunks:
        numbers = chunk.flatten()
        if chunk.null_count or numbers.null_count or not np.isfinite(numbers.to_numpy()).all():
            raise InputError(f"{place}: has missing or infinite numbers")


def _require_tokens(place: str, column: pa.ChunkedArray, length: Any, vocabulary_size: int) -> None:
    """InputError unless each row holds N integers in 0..K-1."""
    if column.type.list_size != length or not types.is_integer(column.type.value_type):
        raise InputError(f"{place}: expected {length} integers in each row, found {column.type}")
    if column.null_count or any(chunk.values.null_count for chunk in column.chunks):
        raise InputError(f"{place}: has missing tokens")
    for first, chunk in zip(np.cumsum([0, *map(len, column.chunks)]), column.chunks, strict=False):
        tokens = chunk.flatten().to_numpy(zero_copy_only=False)
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < vocabulary_size:
            row, position = divmod(int(np.argmax((tokens < 0) | (tokens >= vocabulary_size))), length)
            raise InputError(
                f"{place}: row {first + row}, position {position}: expected a token in "
                f"0..{vocabulary_size - 1}, found {tokens[row * length + position]}"
            )
