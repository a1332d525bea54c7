"""A piece of a table as columns of trimmed text, whatever the format of the file."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import FileDiagnostics, quoted

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Limits:
    """The most that is read into memory, since a file may claim any size."""

    bytes: int = 2**31 - 2**20  # of one file, and of a column's text
    nodes: int = 20_000_000
    edges: int = 200_000_000
    columns: int = 10_000
    cells: int = 2**30  # of the feature matrix, 4 GiB as float32


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text; a blank cell is ''."""

    diagnostics: FileDiagnostics  # of its file
    columns: dict[str, Any]  # name -> pyarrow string [n], chunked
    rows: npt.NDArray[np.int64]  # [n], the number of each row in its file; the header is row 1
    delimiter: str = ","

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def nbytes(self) -> int:
        """The memory used by the text."""
        return sum(int(column.nbytes) for column in self.columns.values())

    def report(self, kind: str, name: str, mask: Mask, message: Callable[[str], str], remedy: str) -> None:
        """Report the cells of a column where the mask is true; `message` turns a quoted cell into a sentence."""
        positions, column = np.flatnonzero(mask), self.columns[name]
        rows = self.rows[positions]
        self.diagnostics.add_rows(kind, rows, lambda i: message(quoted(column[int(positions[i])].as_py())), remedy)


def column_names(header: Sequence[str], diagnostics: FileDiagnostics) -> list[str | None]:
    """A name for every column; a blank name becomes a number, a repeated name is reported and becomes None."""
    names: list[str | None] = []
    for position, cell in enumerate(header, start=1):
        name = cell.strip() or f"column {position}"
        if name in names:
            diagnostics.add(
                "duplicate-column",
                f"the header names {name!r} twice, in columns {names.index(name) + 1} and {position}",
                "give every column its own name",
            )
            names.append(None)
        else:
            names.append(name)
    return names


def is_unnamed(name: str) -> bool:
    """Whether a column is the unnamed index that pandas writes with a frame."""
    return re.fullmatch(r"column \d+|Unnamed:.*|__index_level_.*", name) is not None


def trimmed_table(
    diagnostics: FileDiagnostics,
    names: Sequence[str | None],
    columns: Sequence[Any],
    rows: npt.NDArray[np.int64],
    delimiter: str = ",",
) -> Table:
    """A table of trimmed text, without its blank rows; columns without a name are left out."""
    trimmed = {
        name: pc.utf8_trim_whitespace(column) for name, column in zip(names, columns, strict=True) if name is not None
    }
    blank = np.ones(len(rows), bool)
    for column in trimmed.values():
        if not blank.any():
            break
        blank &= equals(column, "")
    if blank.any():
        keep = pa.array(~blank)
        trimmed = {name: column.filter(keep) for name, column in trimmed.items()}
        rows = rows[~blank]
    return Table(diagnostics, trimmed, rows, delimiter)


def equals(cells: Any, text: str) -> npt.NDArray[np.bool_]:
    """Where a column equals a text: bool [n]."""
    return np.asarray(pc.equal(cells, text))


def is_any_of(cells: Any, choices: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Where a column is one of the choices: bool [n]."""
    return np.asarray(pc.is_in(cells, pa.array(choices, pa.string())))


def index_in(cells: Any, choices: Any) -> npt.NDArray[np.int64]:
    """The first index of each cell in a pyarrow array of choices, −1 if it is not there: long [n]."""
    return np.asarray(pc.index_in(cells, choices).fill_null(-1)).astype(np.int64)
