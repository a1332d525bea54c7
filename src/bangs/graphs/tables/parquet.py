"""Read a Parquet file as text, in pieces."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bangs.graphs.tables.diagnostics import FileDiagnostics
from bangs.graphs.tables.table import Limits, Table, column_names, trimmed_table
from bangs.utils.memory import ran_out

BATCH_ROWS = 2**18  # rows read at once
MAX_TEXT_BYTES = 2**31 - 2**20  # of one column of a batch


def read_parquet(path: Path, ignore: tuple[str, ...], diagnostics: FileDiagnostics, limits: Limits) -> Iterator[Table]:
    """The pieces of a .parquet file; rows are numbered from 1, since there is no header.

    Columns in `ignore` may have any type; cells that cannot be written as text are blank.
    """
    try:
        with pq.ParquetFile(path) as plain:
            schema, rows = plain.schema_arrow, plain.metadata.num_rows
        if len(schema) > limits.columns or rows > max(limits.nodes, limits.edges):
            diagnostics.add(
                "too-large",
                f"it holds {rows:,} rows and {len(schema):,} columns",
                f"at most {limits.columns:,} columns and {max(limits.nodes, limits.edges):,} rows are read",
            )
            return
        # text stays dictionary-encoded until its size is known: a few bytes may stand for many
        texts = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        with pq.ParquetFile(path, read_dictionary=texts) as stream:
            yield from _as_tables(schema.names, stream.iter_batches(batch_size=BATCH_ROWS), ignore, diagnostics, limits)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if ran_out(error):
            raise
        reason = (str(error).splitlines() or ["damaged"])[0]
        diagnostics.add("unreadable", f"it is not a readable Parquet file: {reason}", "write it again, or use .csv")


def _as_tables(
    header: list[str], batches: Iterable[Any], ignore: tuple[str, ...], diagnostics: FileDiagnostics, limits: Limits
) -> Iterator[Table]:
    """Arrow batches as tables of text; a column that cannot become text is reported once and left out."""
    names = column_names(header, diagnostics)
    row = 1
    for batch in batches:
        columns: list[Any] = []
        for position, name in enumerate(names):
            column = pa.chunked_array([batch.column(position)])
            text = None if name is None else as_text(column, limits)
            if text is None and name in ignore:
                text = pa.chunked_array([pa.repeat("", len(column))])
            if text is None and name is not None:
                names[position] = None
                diagnostics.add(
                    "column-type",
                    f"column {name!r} holds {column.type}, which is neither number nor text, or too much of it",
                    f"keep arrays in features.npy, or leave the column out with --ignore {name}",
                )
            columns.append(text)
        yield trimmed_table(diagnostics, names, columns, np.arange(row, row + batch.num_rows))
        row += batch.num_rows


def as_text(column: Any, limits: Limits) -> Any:
    """The cells as text, '' for null; None for a type that cannot become text, or if there is too much text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            lengths = (pc.take(pc.binary_length(part.dictionary), part.indices) for part in column.chunks)
            if sum(pc.sum(length).as_py() or 0 for length in lengths) > min(limits.bytes, MAX_TEXT_BYTES):
                return None
        column = column.cast(kind)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return None
    try:
        text = column.cast(pa.string()).fill_null("")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # such as UUIDs, and pandas' intervals
        return None
    text.validate(full=True)  # a file may declare bytes as text that are not UTF-8
    return text
