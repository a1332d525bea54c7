"""Compute the features of the columns of a node table, piece by piece, as a fitted encoding says."""

from collections.abc import Collection
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.dates import read_dates, time_of_year
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed
from bangs.graphs.tables.fitted_encoding import Categorical, Date, Encoding, Numeric
from bangs.graphs.tables.numbers import MAX_MAGNITUDE, Numbers, is_missing, read_numbers
from bangs.graphs.tables.table import Mask, Table, index_in

_MAX_DEVIATIONS = 1e6  # from the mean; the table of the fit never reaches it
_MAX_NEW_LEVELS = 1000  # of a column that are kept for a note

Matrix = npt.NDArray[np.float32]

# for cells that are not numbers: in tables to learn from, in tables for a fitted model, and in a pandas frame
_REMEDIES = {
    "learning": {
        "not-a-number": "correct it, or take the column as categories with --categorical COLUMN",
        "missing-number": "fill it in, take the column's mean with --fill mean, or leave the column out with "
        "--ignore COLUMN",
        "not-finite": "correct it, or leave the column out with --ignore COLUMN",
    },
    "fitted": {
        "not-a-number": "correct it, or fit the model again; it was fitted with numbers or dates there",
        "missing-number": "fill it in, or take the fitted graph's mean with --fill mean",
        "not-finite": "correct it",
    },
    "frame": {
        "not-a-number": "correct it, or make categories of the column: X[column].astype('category')",
        "missing-number": 'fill it in, take the column\'s mean with SelfTrainingClassifier(fill="mean"), or drop the '
        "column",
        "not-finite": "correct it, or drop the column",
    },
}


class Encoder:
    """Turns pieces of a node table into features float [n, F]; cells that cannot be used are reported."""

    def __init__(self, encoding: Encoding, diagnostics: FileDiagnostics, kind: Literal["learning", "fitted", "frame"]):
        self.columns, self.fill, self.diagnostics = encoding.columns, encoding.fill, diagnostics
        self.width = sum(len(column.features) for column in encoding.columns)
        self._remedies = _REMEDIES[kind]
        self._filled: dict[str, int] = {}
        self._new_levels: dict[str, tuple[int, list[str]]] = {}  # column -> number of cells, and some new levels

    def __call__(self, table: Table) -> Matrix:
        """The features of a piece: float [n, F]."""
        x = np.zeros((len(table), self.width), np.float32)
        start = 0
        for column in self.columns:
            end = start + len(column.features)
            if column.name in table.columns:
                if isinstance(column, Categorical):
                    self._one_hot(table, column, x[:, start:end])
                else:
                    self._scaled(table, column, x[:, start:end])
            start = end
        return x

    def unknown(self, nodes: int) -> Matrix:
        """The features of nodes without a row in the table: means, and no categories: float [nodes, F]."""
        x = np.zeros((nodes, self.width), np.float32)
        start = 0
        for column in self.columns:
            if isinstance(column, Numeric) and not column.centred:
                x[:, start] = column.mean / column.scale
            start += len(column.features)
        return x

    def note(self) -> None:
        """Note what was filled and which levels were unknown in all pieces."""
        for name, blanks in self._filled.items():
            self.diagnostics.note(f"{counted(blanks, 'blank')} of column {name!r} filled with its mean")
        for name, (count, examples) in self._new_levels.items():
            self.diagnostics.note(
                f"column {name!r} holds {listed(examples, 4)}, unknown to the model; "
                f"no category there for {counted(count, 'node')}"
            )

    def _scaled(self, table: Table, column: Numeric | Date, block: Matrix) -> None:
        if isinstance(column, Date):
            cells = table.columns[column.name]
            days, blank = read_dates(cells, column.form), is_missing(cells)
            numbers = Numbers(days, blank, np.isnan(days) & ~blank)
        else:
            numbers = read_numbers(table, column.name, self.diagnostics.all_files.notes)
        if self._report_bad(table, column, numbers):
            return
        if numbers.missing.any():
            self._filled[column.name] = self._filled.get(column.name, 0) + int(numbers.missing.sum())
        values = np.where(numbers.missing, column.mean, numbers.values)
        centre = column.mean if isinstance(column, Date) or column.centred else 0.0
        scaled = (values - centre) / column.scale
        too_far = ~(np.abs(scaled) <= _MAX_DEVIATIONS)
        if too_far.any():
            self._report("not-finite", table, column.name, too_far, "far beyond what the model was fitted with")
            return
        block[:, 0] = scaled
        if isinstance(column, Date) and column.yearly:
            block[:, 1:] = np.where(numbers.missing[:, None], 0.0, time_of_year(values))

    def _one_hot(self, table: Table, column: Categorical, block: Matrix) -> None:
        cells = table.columns[column.name]
        level = index_in(cells, pa.array(column.levels, pa.string()))
        new = (level < 0) & ~is_missing(cells)
        if column.other:
            level = np.where(new, len(column.levels), level)
        elif new.any():
            count, examples = self._new_levels.get(column.name, (0, []))
            new_levels = pc.unique(cells.filter(pa.array(new))).to_pylist()
            examples = list(dict.fromkeys([*examples, *new_levels]))[:_MAX_NEW_LEVELS]
            self._new_levels[column.name] = count + int(new.sum()), examples
        nodes = np.flatnonzero(level >= 0)
        block[nodes, level[nodes]] = 1.0

    def _report_bad(self, table: Table, column: Numeric | Date, numbers: Numbers) -> bool:
        """Report cells that cannot be used as numbers or dates; whether there are any."""
        noun = "date" if isinstance(column, Date) else "number"
        with np.errstate(invalid="ignore"):
            huge = np.abs(numbers.values) > MAX_MAGNITUDE
        blank = numbers.missing if self.fill is None else np.zeros_like(numbers.missing)
        for kind, mask, reason in (
            ("not-a-number", numbers.wrong, f"which is not a {noun}"),
            ("missing-number", blank, f"where a {noun} should be"),
            ("not-finite", huge, "which is infinite or beyond ±1e30"),
        ):
            self._report(kind, table, column.name, mask, reason)
        return bool((numbers.wrong | blank | huge).any())

    def _report(self, kind: str, table: Table, name: str, mask: Mask, reason: str) -> None:
        remedy = self._remedies[kind]
        table.report(kind, name, mask, lambda cell: f"column {name!r} holds {cell}, {reason}", remedy)


def check_columns(table: Table, encoding: Encoding, spare: Collection[str], diagnostics: FileDiagnostics) -> None:
    """Report columns of the encoding that the table lacks; note columns that the encoding does not use."""
    for column in encoding.columns:
        if column.name not in table.columns:
            diagnostics.add(
                "column-missing",
                f"the model was fitted with column {column.name!r}, which is not here; "
                f"the table has {listed(table.names)}",
                "add the column, or fit the model again without it",
            )
    known = {column.name for column in encoding.columns} | set(encoding.left_out) | set(spare)
    new = [name for name in table.names if name not in known]
    if new:
        diagnostics.note(f"{counted(len(new), 'column')} unknown to the model not used: {listed(new)}")
