"""The files that steps exchange: written whole, as Parquet tables with checked metadata and provenance."""

from pairflow.artifacts.atomic import atomic, digest, replacing, require_writable, sole_writer
from pairflow.artifacts.cells import as_cell, from_cell
from pairflow.artifacts.pairs import ADOPTED, OWN, write_pairs
from pairflow.artifacts.provenance import Provenance, machine, provenance_path, read_provenance
from pairflow.artifacts.rows import read_array, read_rows, read_words
from pairflow.artifacts.tables import (
    METRIC_COLUMNS,
    Metadata,
    as_metrics,
    identity,
    is_own,
    label_array,
    label_column,
    read_metadata,
    read_table,
    row_column,
    save_table,
    token_array,
    token_column,
    token_dtype,
    write_table,
)
from pairflow.files import read_object, require_apart, require_file, require_folder, resolved
