"""Frames: a pandas frame with words, dates and gaps as features, read as `bangs fit` reads a table."""

from datetime import date
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from bangs.graphs.tables.column_kinds import ColumnStatistics
from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.feature_encoding import Column, Encoding
from bangs.graphs.tables.features import Encoder, Matrix, check_columns
from bangs.graphs.tables.parquet import as_text
from bangs.graphs.tables.table import Limits, Table, trimmed_table

NAME = "X"
_CELLS = str | int | float | np.generic | Decimal | date | type(None) | type(pd.NA) | type(pd.NaT)


def encode_frame(
    frame: pd.DataFrame, encoding: Encoding | None, notes: list[str], fill: Literal["mean"] | None = None
) -> tuple[Matrix, Encoding]:
    """The features float [N, F] of a frame, and how its columns became them; all problems are raised at once.

    Numbers are scaled, words become categories and dates days; with an `encoding`, as in the frame it was made for.
    Missing numbers and dates are refused, or filled with the mean.
    """
    diagnostics = Diagnostics(NAME, "features", notes)
    table = _table(frame, diagnostics)
    kept: list[Column] = []
    left_out: list[str] = []
    if encoding is None:
        for name in table.names:
            statistics = ColumnStatistics(name, NAME, isinstance(frame[name].dtype, pd.CategoricalDtype))
            statistics.add(table)
            column = statistics.encoding(notes)
            left_out += [name] if column is None else []
            kept += [] if column is None else [column]
        encoding = Encoding(columns=tuple(kept), left_out=tuple(left_out), fill=fill)
        if not kept and not diagnostics:
            diagnostics.add(
                "no-features", NAME, "no column can be a feature", "give columns of numbers, words or dates"
            )
    else:
        check_columns(table, encoding, (), diagnostics)
    encoder = Encoder(encoding, NAME, diagnostics, "frame")
    features = encoder(table)
    diagnostics.raise_any()
    notes += encoder.notes()
    return features, encoding


def _table(frame: pd.DataFrame, diagnostics: Diagnostics) -> Table:
    """The cells of a frame as text; rows are counted from 0, as `iloc` counts them."""
    names: list[str | None] = []
    columns: list[Any] = []
    for name in frame.columns:
        column = frame[name]
        refused = (
            [type(cell).__name__ for cell in column if not isinstance(cell, _CELLS)] if column.dtype == object else []
        )
        if column.dtype == object and not refused:
            column = pd.Series([None if pd.isna(cell) else str(cell) for cell in column], dtype=object)
        text = None if refused else as_text(pa.chunked_array([pa.Array.from_pandas(column)]), Limits())
        if text is None:
            message = f"column {name!r} holds {[*refused, column.dtype][0]}, which is neither number, word nor date"
            diagnostics.add("column-type", NAME, message, f"drop it: X.drop(columns={name!r})")
        names.append(None if text is None else str(name))
        columns.append(text)
    return trimmed_table(NAME, names, columns, np.arange(len(frame)), drop_blank=False)
