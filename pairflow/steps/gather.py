"""Joins the shards of a pairing: files with the pairs of some of its rows."""

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import (
    Metadata,
    Provenance,
    read_provenance,
    read_table,
    row_column,
    save_table,
    token_array,
)
from pairflow.config import PairSettings, check
from pairflow.errors import InputError
from pairflow.pairing.pair import subset_rows
from pairflow.steps.command import step
from pairflow.steps.options import out


@step()
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
@out("--out", help="Output file for the pairs (Parquet), with the bytes of an unsharded pairing.")
def main(shards: tuple[Path, ...], out: Path):
    """Join the shards that `pairflow pair --shard k/P` has written, in any order."""
    provenance = Provenance()
    tables, metadata, order = _read(shards)
    for path in shards:
        provenance.add(read_provenance(path))
    joined = pa.concat_tables(tables)
    if order is not None:
        joined = joined.take(np.argsort(order))
    columns = {name: _plain(joined[name]) for name in joined.column_names}
    save_table(out, pa.table(columns), metadata, provenance)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Rebuild a column from its numbers, so that its file has the same bytes as without shards."""
    if pa.types.is_fixed_size_list(column.type):
        return row_column(token_array(column))
    return pa.array(column.to_numpy())


def _read(shards: tuple[Path, ...]) -> tuple[list[pa.Table], Metadata, np.ndarray | None]:
    """Read the shards. Returns their tables, the metadata of the joined pairs, and the data's row number of
    each of their rows, None if these are in order.

    Raises InputError if a shard is missing, occurs twice, or belongs to another pairing.
    """
    read = [(path, *read_table(path, "shard of pairs", "shard of vector pairs")) for path in shards]
    joined = _joined(read[0][2])
    first_schema = read[0][1].schema
    for path, table, metadata in read:
        if not table.schema.equals(first_schema):
            types = ", ".join(map(str, table.schema.types))
            raise InputError(f"{path}: expected columns as in {shards[0]}, found {types}")
        if _joined(metadata) != joined:
            raise InputError(
                f"{path}: a shard of another pairing than {shards[0]} (other tokens or parameters)"
            )
    read.sort(key=lambda shard: shard[2].parameters["rows"])
    expected = 0
    for path, _, metadata in read:
        first, last = metadata.parameters["rows"]
        if first < expected:
            raise InputError(f"{path}: row {first} is in another shard as well; name each shard once")
        if first > expected:
            break
        expected = last
    if expected != read[0][2].parameters["of"]:
        raise InputError(f"{shards[0]} and others: no shard begins at row {expected}")
    tables, order = [table for _, table, _ in read], None
    parameters = dict(joined.parameters)
    if parameters.pop("order", None):
        settings = check(PairSettings, parameters, str(shards[0]))
        parts = subset_rows(expected, settings.count_subsets(expected), settings.seed)
        order = np.concatenate(parts)
    return tables, replace(joined, parameters=parameters), order


def _joined(metadata: Metadata) -> Metadata:
    """Return the metadata of the joined pairs, from the metadata of a shard."""
    parameters = {key: value for key, value in metadata.parameters.items() if key not in ("rows", "of")}
    return replace(metadata, kind=metadata.kind.removeprefix("shard of "), parameters=parameters)


if __name__ == "__main__":
    main()
