"""Shards of one pairing to its pairs."""

from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from pairflow.artifacts import (
    Metadata,
    Provenance,
    atomic,
    read_provenance,
    read_table,
    token_array,
    token_column,
    write_table,
)
from pairflow.errors import InputError
from pairflow.steps.command import out, step


@step()
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
@out("--out", help="Pairs, Parquet: the bytes of the unsharded pairing.")
def main(shards: tuple[Path, ...], out: Path):
    """Join the shards that `pairflow pair --shard k/P` made, in any order."""
    provenance = Provenance()
    read = [(path, *read_table(path, "shard of pairs")) for path in shards]
    whole = _whole(read[0][2])
    for path, _, metadata in read:
        if _whole(metadata) != whole:
            raise InputError(
                f"{path}: a shard of another pairing than {shards[0]} (other tokens or parameters)"
            )
    read.sort(key=lambda shard: shard[2].parameters["rows"])
    expected = 0
    for _, _, metadata in read:
        first, last = metadata.parameters["rows"]
        if first != expected:
            break
        expected = last
    if expected != read[0][2].parameters["of"]:
        raise InputError(f"{shards[0]} and others: no shard begins at row {expected}")
    columns = {
        name: token_column(
            np.concatenate([token_array(table[name]) for _, table, _ in read]), whole.vocabulary_size
        )
        for name in ("x0", "x1")
    }
    with atomic(out) as [temporary]:
        write_table(temporary, pa.table(columns), whole)
    for path in shards:
        provenance.add(read_provenance(path))
    provenance.write(out)


def _whole(metadata: Metadata) -> Metadata:
    """What the metadata of the joined pairs say."""
    parameters = {key: value for key, value in metadata.parameters.items() if key not in ("rows", "of")}
    return Metadata(**{**metadata.__dict__, "kind": "pairs", "parameters": parameters})


if __name__ == "__main__":
    main()
