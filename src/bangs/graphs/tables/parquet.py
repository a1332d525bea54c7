"""Parquet: a columnar file as a table of text."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.table import Limits, Table, named, tabled


def read_parquet(path: Path, ignore: tuple[str, ...], diagnostics: Diagnostics, limits: Limits) -> Table | None:
    """The table of a .parquet file, or None after complaining; rows are numbered from 1, there being no header.

    Columns in `ignore` may hold anything; what has no text is blank there.
    """
    file = path.name
    try:
        with pq.ParquetFile(path) as plain:
            schema, metadata = plain.schema_arrow, plain.metadata
            size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        if len(schema) > limits.columns or size > limits.bytes or metadata.num_rows > max(limits.nodes, limits.edges):
            diagnostics.add(
                "too-large",
                file,
                f"it holds {metadata.num_rows:,} rows, {len(schema):,} columns and {size:,} bytes",
                f"at most {limits.columns:,} columns and {limits.bytes:,} bytes are read",
            )
            return None
        # text stays a dictionary until its true size is known: a few bytes may stand for many
        texts = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        with pq.ParquetFile(path, read_dictionary=texts) as stream:
            table = stream.read()
        names = named(table.column_names, file, diagnostics)
        columns: list[Any] = []
        for place, name in enumerate(names):
            column = None if name is None else as_text(table.column(place), limits, blank=name in ignore)
            columns.append(column)
            if column is None and name is not None:
                names[place] = None
                diagnostics.add(
                    "column-type",
                    file,
                    f"column {name!r} holds {table.column(place).type}, which is neither number nor text, "
                    "or too much of it",
                    f"keep arrays in features.npy, or leave the column out with --ignore {name}",
                )
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        diagnostics.add("unreadable", file, f"it is no readable Parquet file: {reason}", "write it again, or use .csv")
        return None
    return tabled(file, names, columns, np.arange(1, 1 + len(table)))


def as_text(column: Any, limits: Limits, *, blank: bool = False) -> Any:
    """The cells as text, '' for null; for a type that has no text None, or only '' where `blank` is enough."""
    text = _text(column, limits)
    return pa.chunked_array([pa.repeat("", len(column))]) if text is None and blank else text


def _text(column: Any, limits: Limits) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            lengths = (pc.take(pc.binary_length(part.dictionary), part.indices) for part in column.chunks)
            if sum(pc.sum(length).as_py() or 0 for length in lengths) > limits.bytes:
                return None
        column = column.cast(kind)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return None
    text = column.cast(pa.string()).fill_null("")
    text.validate(full=True)  # a file may call bytes text that are none
    return text
