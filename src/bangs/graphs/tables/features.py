"""Features: the columns of a node table as a matrix of numbers, a piece of the table at a time."""

from collections.abc import Collection
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.dates import read_dates, time_of_year
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed
from bangs.graphs.tables.feature_encoding import Categorical, Date, Encoding, Numeric
from bangs.graphs.tables.numbers import LARGEST, Numbers, is_missing, read_numbers
from bangs.graphs.tables.table import Mask, Table, places_in

_FARTHEST = 1e6  # standard deviations; never reached by the table an encoding was fitted on
_MOST_WORDS = 1000  # of new words that are kept for a note

Matrix = npt.NDArray[np.float32]

# the way out of a cell that is not a number: in tables to learn from, in tables for a fitted model, and in a frame
_WAYS_OUT = {
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
        self._ways_out = _WAYS_OUT[kind]
        self._written: list[str] = []  # how numbers are written
        self._filled: dict[str, int] = {}
        self._new_words: dict[str, tuple[int, list[str]]] = {}  # column -> cells, and some of their words

    def __call__(self, table: Table) -> Matrix:
        """The features of a piece: float [n, F]."""
        x = np.zeros((len(table), self.width), np.float32)
        place = 0
        for column in self.columns:
            end = place + len(column.features)
            if column.name in table.columns:
                if isinstance(column, Categorical):
                    self._one_hot(table, column, x[:, place:end])
                else:
                    self._scaled(table, column, x[:, place:end])
            place = end
        return x

    def unknown(self, nodes: int) -> Matrix:
        """The features of nodes of which nothing is known: means, and no categories: float [nodes, F]."""
        x = np.zeros((nodes, self.width), np.float32)
        place = 0
        for column in self.columns:
            if isinstance(column, Numeric) and not column.centred:
                x[:, place] = column.mean / column.scale
            place += len(column.features)
        return x

    def note(self) -> None:
        """Say what was filled and what was not known, over all pieces."""
        self.diagnostics.every.notes += dict.fromkeys(self._written)
        for name, blanks in self._filled.items():
            self.diagnostics.note(f"{counted(blanks, 'blank')} of column {name!r} filled with its mean")
        for name, (count, words) in self._new_words.items():
            self.diagnostics.note(
                f"column {name!r} holds {listed(words, 4)}, unknown to the model; "
                f"no category there for {counted(count, 'node')}"
            )

    def _scaled(self, table: Table, column: Numeric | Date, block: Matrix) -> None:
        if isinstance(column, Date):
            words = table.columns[column.name]
            days, blank = read_dates(words, column.form), is_missing(words)
            found = Numbers(days, blank, np.isnan(days) & ~blank)
        else:
            found = read_numbers(table, column.name, self._written)
        if self._report_bad(table, column, found):
            return
        if found.missing.any():
            self._filled[column.name] = self._filled.get(column.name, 0) + int(found.missing.sum())
        values = np.where(found.missing, column.mean, found.values)
        centre = column.mean if isinstance(column, Date) or column.centred else 0.0
        scaled = (values - centre) / column.scale
        far = ~(np.abs(scaled) <= _FARTHEST)
        if far.any():
            self._report("not-finite", table, column.name, far, "far beyond what the model was fitted with")
            return
        block[:, 0] = scaled
        if isinstance(column, Date) and column.yearly:
            block[:, 1:] = np.where(found.missing[:, None], 0.0, time_of_year(values))

    def _one_hot(self, table: Table, column: Categorical, block: Matrix) -> None:
        words = table.columns[column.name]
        level = places_in(words, pa.array(column.levels, pa.string()))
        new = (level < 0) & ~is_missing(words)
        if column.other:
            level = np.where(new, len(column.levels), level)
        elif new.any():
            count, some = self._new_words.get(column.name, (0, []))
            here = pc.unique(words.filter(pa.array(new))).to_pylist()
            some = list(dict.fromkeys([*some, *here]))[:_MOST_WORDS]
            self._new_words[column.name] = count + int(new.sum()), some
        nodes = np.flatnonzero(level >= 0)
        block[nodes, level[nodes]] = 1.0

    def _report_bad(self, table: Table, column: Numeric | Date, found: Numbers) -> bool:
        """Report cells that cannot be used as numbers or dates; whether there are any."""
        thing = "date" if isinstance(column, Date) else "number"
        with np.errstate(invalid="ignore"):
            huge = np.abs(found.values) > LARGEST
        blank = found.missing if self.fill is None else np.zeros_like(found.missing)
        for kind, where, what in (
            ("not-a-number", found.wrong, f"which is not a {thing}"),
            ("missing-number", blank, f"where a {thing} should be"),
            ("not-finite", huge, "which is infinite or beyond ±1e30"),
        ):
            self._report(kind, table, column.name, where, what)
        return bool((found.wrong | blank | huge).any())

    def _report(self, kind: str, table: Table, name: str, where: Mask, what: str) -> None:
        remedy = self._ways_out[kind]
        table.report(self.diagnostics, kind, name, where, lambda cell: f"column {name!r} holds {cell}, {what}", remedy)


def check_columns(table: Table, encoding: Encoding, spare: Collection[str], diagnostics: FileDiagnostics) -> None:
    """Report columns that an encoding needs and the table lacks; say which new ones are not used."""
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
