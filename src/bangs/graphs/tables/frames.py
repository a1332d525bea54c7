"""Encode a pandas frame with words, dates and gaps as features, as `bangs fit` encodes a table."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.column_features import Encoder, Matrix, check_columns
from bangs.graphs.tables.column_statistics import ColumnStatistics, column_encodings
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.graphs.tables.parquet import as_text
from bangs.graphs.tables.table import Limits, Table, column_names

FILE = "X"
_CELLS = str | int | float | np.generic | Decimal | date | pd.Interval | type(None) | type(pd.NA) | type(pd.NaT)


def encode_frame(
    frame: pd.DataFrame,
    encoding: Encoding | None,
    notes: list[str],
    fill: Literal["mean"] | None = None,
    scale: str = "auto",
) -> tuple[Matrix, Encoding]:
    """The features float [N, F] of a frame, and its encoding; all problems are raised at once.

    Numbers are scaled as `ReadOptions.scale` says, words become categories and dates days; a given `encoding` is
    applied as it is. Missing numbers and dates are refused, or filled with the mean.
    """
    diagnostics = Diagnostics(FILE, "features", notes).of(FILE)
    names = column_names([str(name) for name in frame.columns], diagnostics)
    kinds = dict(zip(names, frame.dtypes, strict=True))
    table = _table(frame, names, diagnostics)
    if encoding is None:
        statistics = [
            ColumnStatistics(name, diagnostics, isinstance(kinds[name], pd.CategoricalDtype), scale)
            for name in table.names
        ]
        for column in statistics:
            column.add(table)
        columns, left_out = column_encodings(statistics)
        encoding = Encoding(columns=columns, left_out=left_out, fill=fill)
    else:
        check_columns(table, encoding, (), diagnostics)
    encoder = Encoder(encoding, diagnostics, "frame")
    features = encoder(table)
    diagnostics.all_files.raise_any()
    encoder.note()
    return features, encoding


def _table(frame: pd.DataFrame, names: list[str | None], diagnostics: FileDiagnostics) -> Table:
    """The cells of a frame as text; rows are counted from 0, as by `iloc`."""
    columns: dict[str, Any] = {}
    for position, (label, name) in enumerate(zip(frame.columns, names, strict=True)):
        column = frame.iloc[:, position]
        if isinstance(column.dtype, pd.SparseDtype):
            column = column.astype(column.dtype.subtype)
        if isinstance(getattr(column.dtype, "categories", column).dtype, pd.IntervalDtype):
            column = column.astype(object)  # as of pd.cut, which Arrow cannot write as text
        refused = [str(column.dtype)] if column.dtype.kind == "c" else []
        if column.dtype == object:
            refused = [type(cell).__name__ for cell in column if not isinstance(cell, _CELLS)]
            if not refused:
                column = pd.Series([None if pd.isna(cell) else str(cell) for cell in column], dtype=object)
        try:
            text = None if refused else as_text(pa.chunked_array([pa.Array.from_pandas(column)]), Limits())
        except (ValueError, NotImplementedError):  # Arrow's, as for categories of several types, or half a character
            text = None
        if text is None:
            message = f"column {label!r} holds {[*refused, column.dtype][0]}, which is neither number, word nor date"
            diagnostics.add("column-type", message, f"drop it: X.drop(columns={label!r})")
        elif name is not None:  # None is a repeated name, which is reported
            columns[name] = pc.utf8_trim_whitespace(text)
    return Table(diagnostics, columns, np.arange(len(frame)))
