"""Features: the columns of a node table as a matrix of numbers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import Diagnostics, counted, listed, quoted
from bangs.graphs.tables.encoding import Categorical, Encoding, Numeric
from bangs.graphs.tables.numbers import FORGIVEN, LARGEST, Numbers, are_codes, are_dressed, is_missing, read_numbers
from bangs.graphs.tables.table import Limits, Table, places_in

LEVELS = 50  # the most categories a column keeps; what is rarer becomes "other"
NAMES = 10  # so many cells, no two alike, name nodes and are no categories
_FARTHEST = 1e6  # standard deviations; never reached by the table an encoding was fitted on

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Fitting:
    """Learns from a table how its columns become features."""

    categorical: Collection[str] = ()  # columns to take as words even where they hold digits
    fill: Literal["mean"] | None = None

    def __call__(
        self, table: Table, names: Sequence[str], diagnostics: Diagnostics, notes: list[str]
    ) -> "tuple[list[Numeric | Categorical], list[str], dict[str, Numbers]]":
        """The encoding of the columns, the names left out, and the numbers read on the way."""
        kept: list[Numeric | Categorical] = []
        left_out: list[str] = []
        parsed: dict[str, Numbers] = {}
        for name in names:
            column, found = self._one(table, name, diagnostics, notes)
            if column is None:
                left_out.append(name)
            else:
                kept.append(column)
            if found is not None:
                parsed[name] = found
        return kept, left_out, parsed

    def _one(
        self, table: Table, name: str, diagnostics: Diagnostics, notes: list[str]
    ) -> tuple[Numeric | Categorical | None, Numbers | None]:
        words = table.columns[name]
        if is_missing(words).all():
            notes.append(f"{table.file}: column {name!r} is blank throughout; left out")
            return None, None
        if name in self.categorical:
            return _categories(table, name, notes), None
        found = read_numbers(table, name, notes)
        if found.share <= FORGIVEN:
            if are_dressed(words):
                notes.append(
                    f"{table.file}: column {name!r} holds numbers with signs as in 1,234 or 45 % or $3, "
                    "which are read as words; write them plain"
                )
            return _categories(table, name, notes), None
        if not found.wrong.any() and are_codes(words):
            notes.append(f"{table.file}: column {name!r} holds digits that begin with 0; taken as categories")
            return _categories(table, name, notes), None
        if report_bad_numbers(table, name, found, self.fill, diagnostics):
            return None, None
        mean, scale = float(np.nanmean(found.values)), float(np.nanstd(found.values))
        if scale <= 1e-12 * max(abs(mean), 1e-12):
            notes.append(f"{table.file}: column {name!r} has one value throughout; left out")
            return None, None
        return Numeric(name, mean, scale), found


def tell_kinds(file: str, columns: Sequence[Numeric | Categorical], notes: list[str]) -> None:
    """Says which columns are numbers and which are words."""
    for what, kind in (("numeric", Numeric), ("categorical", Categorical)):
        names = [column.name for column in columns if isinstance(column, kind)]
        if names:
            notes.append(f"{file}: {counted(len(names), f'{what} column')} {listed(names)}")


# the way out of a cell that is no number: of a graph to learn from, and of one read as a fitted model wants it
_WAYS_OUT = {
    "fitting": {
        "not-a-number": "correct it, or take the column as categories with --categorical COLUMN",
        "missing-number": "fill it in, take the column's mean with --fill mean, or leave the column out with "
        "--ignore COLUMN",
        "not-finite": "correct it, or leave the column out with --ignore COLUMN",
    },
    "fitted": {
        "not-a-number": "correct it, or fit the model again; it was fitted with numbers there",
        "missing-number": "fill it in, or take the fitted graph's mean with --fill mean",
        "not-finite": "correct it",
    },
}


def report_bad_numbers(
    table: Table,
    name: str,
    found: Numbers,
    fill: Literal["mean"] | None,
    diagnostics: Diagnostics,
    model: Literal["fitting", "fitted"] = "fitting",
) -> bool:
    """Complains of cells that cannot be used as numbers; whether there were any."""
    words = table.columns[name]
    with np.errstate(invalid="ignore"):
        huge = np.abs(found.values) > LARGEST
    blank = found.missing if fill is None else np.zeros_like(found.missing)
    for kind, where, tells in (
        ("not-a-number", found.wrong, "which is no number"),
        ("missing-number", blank, "where a number should be"),
        ("not-finite", huge, "which is infinite or beyond ±1e30"),
    ):
        nodes = np.flatnonzero(where)
        if len(nodes):
            _tell(kind, table, name, words, nodes, tells, _WAYS_OUT[model][kind], diagnostics)
    return bool((found.wrong | blank | huge).any())


def encode(
    table: Table,
    encoding: Encoding,
    parsed: dict[str, Numbers],
    diagnostics: Diagnostics,
    notes: list[str],
    limits: Limits,
    model: Literal["fitting", "fitted"] = "fitted",
) -> Matrix:
    """The table's part of x: float [N, F]; empty after complaining of cells that were not `parsed` before."""
    width = sum(len(column.features) for column in encoding.columns)
    if width * len(table) > limits.cells:
        diagnostics.add(
            "too-wide",
            table.file,
            f"its {len(encoding.columns):,} columns become {width:,} features of {len(table):,} nodes, "
            f"more than {limits.cells:,} numbers",
            "leave columns out with --ignore COLUMN, or keep sparse features in features.npz",
        )
        return np.zeros((len(table), 0), np.float32)
    x = np.zeros((len(table), width), np.float32)
    place = 0
    for column in encoding.columns:
        end = place + len(column.features)
        if column.name in table.columns:
            block = x[:, place:end]
            if isinstance(column, Numeric):
                _numeric(table, column, parsed, encoding.fill, block, diagnostics, notes, model)
            else:
                _one_hot(table, column, block, notes)
        place = end
    return x


def check_columns(
    table: Table, encoding: Encoding, spare: Collection[str], diagnostics: Diagnostics, notes: list[str]
) -> None:
    """Complains of columns an encoding needs and the table lacks; says which new ones are not used."""
    for column in encoding.columns:
        if column.name not in table.columns:
            diagnostics.add(
                "column-missing",
                table.file,
                f"the model was fitted with column {column.name!r}, which is not here; "
                f"the table has {listed(table.names)}",
                "add the column, or fit the model again without it",
            )
    known = {column.name for column in encoding.columns} | set(encoding.left_out) | set(spare)
    new = [name for name in table.names if name not in known]
    if new:
        notes.append(f"{table.file}: {counted(len(new), 'column')} unknown to the model not used: {listed(new)}")


def _numeric(
    table: Table,
    column: Numeric,
    parsed: dict[str, Numbers],
    fill: Literal["mean"] | None,
    block: Matrix,
    diagnostics: Diagnostics,
    notes: list[str],
    model: Literal["fitting", "fitted"],
) -> None:
    found = parsed.get(column.name)
    if found is None:
        found = read_numbers(table, column.name, notes)
        if report_bad_numbers(table, column.name, found, fill, diagnostics, model):
            return
    scaled = (np.where(found.missing, column.mean, found.values) - column.mean) / column.scale
    if fill is not None and found.missing.any():
        notes.append(
            f"{table.file}: {counted(int(found.missing.sum()), 'blank')} of column {column.name!r} filled with its mean"
        )
    nodes = np.flatnonzero(~(np.abs(scaled) <= _FARTHEST))
    if len(nodes):
        words, tells = table.columns[column.name], "far beyond what the model was fitted with"
        _tell("not-finite", table, column.name, words, nodes, tells, "correct it", diagnostics)
        return
    block[:, 0] = scaled


def _one_hot(table: Table, column: Categorical, block: Matrix, notes: list[str]) -> None:
    words = table.columns[column.name]
    level = places_in(words, pa.array(column.levels, pa.string()))
    stray = (level < 0) & ~is_missing(words)
    if column.other:
        level = np.where(stray, len(column.levels), level)
    elif stray.any():
        new = pc.unique(words.filter(pa.array(stray))).to_pylist()
        notes.append(
            f"{table.file}: column {column.name!r} holds {listed(new, 4)}, unknown to the model; "
            f"no category there for {counted(int(stray.sum()), 'node')}"
        )
    nodes = np.flatnonzero(level >= 0)
    block[nodes, level[nodes]] = 1.0


def _categories(table: Table, name: str, notes: list[str]) -> Categorical | None:
    """The levels of a column of words: all of them, or the most frequent; None if it names nodes one by one."""
    words = table.columns[name]
    present = words.filter(pa.array(~is_missing(words)))
    counts = pc.value_counts(present)
    levels = sorted(zip(counts.field("counts").to_pylist(), counts.field("values").to_pylist(), strict=True), key=rank)
    if len(levels) < 2:
        notes.append(f"{table.file}: column {name!r} has one value throughout; left out")
        return None
    if len(levels) == len(present) >= NAMES:
        notes.append(f"{table.file}: column {name!r} has another word in every cell, so no categories; left out")
        return None
    if len(levels) > LEVELS and 2 * len(levels) > len(present):
        notes.append(
            f"{table.file}: column {name!r} has {len(levels):,} different words in {len(present):,} cells, "
            "too many to be categories; left out"
        )
        return None
    if len(present) < len(words):
        notes.append(f"{table.file}: no category for {counted(len(words) - len(present), 'blank')} of column {name!r}")
    if len(levels) > LEVELS:
        notes.append(
            f"{table.file}: column {name!r} has {len(levels):,} categories; the {LEVELS} most frequent are kept, "
            "the others taken as one"
        )
    return Categorical(name, tuple(sorted(word for _, word in levels[:LEVELS])), other=len(levels) > LEVELS)


def rank(level: tuple[int, str]) -> tuple[int, str]:
    return -level[0], level[1]


def _tell(
    kind: str, table: Table, name: str, words: Any, nodes: Any, tells: str, remedy: str, diagnostics: Diagnostics
) -> None:
    diagnostics.add_rows(
        kind,
        table.file,
        table.rows[nodes],
        lambda i: f"column {name!r} holds {quoted(words[int(nodes[i])].as_py())}, {tells}",
        remedy,
    )
