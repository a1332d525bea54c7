"""Tables: one file of rows, whatever its format, as columns of trimmed text."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import Diagnostics, listed

FORMATS = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Limits:
    """The most that is read; a file from a stranger may claim anything."""

    bytes: int = 2**31 - 2**20  # of one file, and of a column's text
    nodes: int = 20_000_000
    edges: int = 200_000_000
    columns: int = 10_000
    cells: int = 2**30  # of the feature matrix, 4 GiB as float32


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text; a blank cell is ''."""

    file: str
    columns: dict[str, Any]  # name -> pyarrow string [n], chunked
    rows: npt.NDArray[np.int64]  # [n], the number of each row in its file, the header being row 1
    delimiter: str = ","

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        return list(self.columns)


def find(folder: Path, stem: str, diagnostics: Diagnostics) -> Path | None:
    """The file `stem.csv`, `stem.tsv` or `stem.parquet` of a folder."""
    if any("\ud800" <= letter <= "\udfff" for letter in str(folder)):  # so Python spells bytes that are no text
        diagnostics.add(
            "path", str(folder), "the folder's name is not UTF-8", "rename it, or copy the tables elsewhere"
        )
        return None
    found = [folder / f"{stem}{suffix}" for suffix in FORMATS if (folder / f"{stem}{suffix}").is_file()]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(path.name for path in found)
        diagnostics.add(
            "two-tables", stem, f"both {names} are there, and only one can be the {stem} table", "remove or rename one"
        )
        return found[0]
    present = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    near = get_close_matches(stem, present, n=1, cutoff=0.5)
    if near and near[0].endswith((".gz", ".zip", ".bz2", ".xz", ".zst")):
        remedy = f"unpack {near[0]!r} if that is it; a table is a plain .csv or .tsv file, or a .parquet file"
    elif near and near[0].endswith((".xlsx", ".xls", ".ods")):
        remedy = f"save the sheet of {near[0]!r} as 'CSV UTF-8' under the name {stem}.csv if that is it"
    elif near:
        remedy = f"rename {near[0]!r} if that is it; a table is a .csv, .tsv or .parquet file"
    else:
        remedy = f"put the {stem} table into {folder} under one of these names"
    diagnostics.add(
        "no-table",
        f"{stem}.csv",
        f"the folder has no {stem}.csv, {stem}.tsv or {stem}.parquet; it holds {listed(present) or 'nothing'}",
        remedy,
    )
    return None


def report_no_rows(stem: str, file: str, diagnostics: Diagnostics) -> None:
    """Says that a table holds none of its nodes or edges."""
    diagnostics.add("no-rows", file, "it has a header and no rows", f"a graph needs {stem}; add them below it")


def named(header: Sequence[str], file: str, diagnostics: Diagnostics) -> list[str | None]:
    """A name for every column: blanks are numbered, and None stands for a repeated name, which is complained about."""
    names: list[str | None] = []
    for place, cell in enumerate(header, start=1):
        name = cell.strip() or f"column {place}"
        if name in names:
            diagnostics.add(
                "duplicate-column",
                file,
                f"the header names {name!r} twice, in columns {names.index(name) + 1} and {place}",
                "give every column its own name",
            )
            names.append(None)
        else:
            names.append(name)
    return names


def unnamed(name: str) -> bool:
    """Whether a column is the nameless index that pandas writes beside a frame."""
    return name.startswith(("column ", "Unnamed:", "__index_level_"))


def equals(words: Any, word: str) -> npt.NDArray[np.bool_]:
    """Where a column of text is this word: bool [n]."""
    return np.asarray(pc.equal(words, word))


def among(words: Any, choices: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Where a column of text is one of these words: bool [n]."""
    return np.asarray(pc.is_in(words, pa.array(choices, pa.string())))


def places_in(words: Any, choices: Any) -> npt.NDArray[np.int64]:
    """Where each word stands first in a pyarrow array of choices, −1 if nowhere: long [n]."""
    return np.asarray(pc.index_in(words, choices).fill_null(-1)).astype(np.int64)


def tabled(
    file: str,
    names: Sequence[str | None],
    columns: Sequence[Any],
    rows: npt.NDArray[np.int64],
    delimiter: str = ",",
) -> Table:
    """A table of trimmed text without its blank rows."""
    trimmed = {
        name: pc.utf8_trim_whitespace(column) for name, column in zip(names, columns, strict=True) if name is not None
    }
    blank = np.ones(len(rows), dtype=bool)
    for column in trimmed.values():
        if not blank.any():
            break
        blank &= equals(column, "")
    if blank.any():
        keep = pa.array(~blank)
        trimmed = {name: column.filter(keep) for name, column in trimmed.items()}
        rows = rows[~blank]
    return Table(file, trimmed, rows, delimiter)
