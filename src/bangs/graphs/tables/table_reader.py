"""Find the table files of a folder and read them in pieces of text."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from bangs.errors import BangsError, OutOfMemory
from bangs.graphs.tables.delimited import read_delimited
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, listed
from bangs.graphs.tables.parquet import read_parquet
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Table
from bangs.utils.memory import available_memory, gib, ran_out

FORMATS = (".csv", ".tsv", ".parquet")


@dataclass(eq=False)
class TableReader:
    """Reads a table in pieces, as often as needed; only the first reading reports problems.

    With `hold` the text stays in memory after the first reading.
    """

    path: Path
    options: ReadOptions
    diagnostics: FileDiagnostics
    hold: bool
    _held: list[Table] | None = None
    _is_first_reading: bool = True

    def __iter__(self) -> Iterator[Table]:
        if self._held is not None:
            yield from self._held
            return
        diagnostics = self.diagnostics if self._is_first_reading else Diagnostics("").of(self.path.name)
        self._is_first_reading = False
        held: list[Table] = []
        limits, size, rows = self.options.limits, 0, 0
        max_rows = limits.nodes if self.path.stem == "nodes" else limits.edges
        try:
            for piece in self._pieces(diagnostics):
                table = replace(piece, diagnostics=self.diagnostics)  # also if those of this reading are dropped
                rows += len(table)
                size += table.nbytes
                if size > limits.bytes:
                    self._report_too_large(f"its text takes more than {limits.bytes:,} bytes", diagnostics)
                    return
                if self.hold:
                    if 2 * table.nbytes > available_memory():  # its numbers need as much as its text
                        raise MemoryError(f"{self.path.name} does not fit into memory")
                    held.append(table)
                if len(table):
                    yield table
        except OSError as error:
            reason = f"it cannot be opened: {error.strerror or error}"
            diagnostics.add("unreadable", reason, "look at its permissions")
            return
        if rows > max_rows:
            self._report_too_large(f"it has {rows:,} rows, {max_rows:,} are allowed", diagnostics)
        if rows == 0 and not diagnostics:
            remedy = f"a graph needs {self.path.stem}; add them below it"
            diagnostics.add("no-rows", "it has a header and no rows", remedy)
        if self.hold:
            self._held = [table for table in held if len(table)]

    def _pieces(self, diagnostics: FileDiagnostics) -> Iterator[Table]:
        limits, size = self.options.limits, self.path.stat().st_size
        if size > limits.bytes:
            message = f"it has {size:,} bytes, {limits.bytes:,} are allowed"
            diagnostics.add("too-large", message, "take a part of the graph")
        elif self.path.suffix == ".parquet":
            yield from read_parquet(self.path, self.options.unread, diagnostics, limits)
        else:
            yield from read_delimited(self.path, diagnostics, limits)

    def _report_too_large(self, message: str, diagnostics: FileDiagnostics) -> None:
        diagnostics.add("too-large", message, "take a part of the graph, or make a store of it with `bangs convert`")


def open_table(
    folder: Path, stem: str, options: ReadOptions, diagnostics: Diagnostics, *, hold: bool
) -> TableReader | None:
    """The reader of `stem.csv`, `stem.tsv` or `stem.parquet` of a folder; None if there is none, which is reported."""
    if any("\ud800" <= letter <= "\udfff" for letter in str(folder)):  # surrogates stand for bytes that are not UTF-8
        remedy = "rename it, or copy the tables elsewhere"
        diagnostics.of(str(folder)).add("path", "the folder's name is not UTF-8", remedy)
        return None
    names = [f"{stem}{suffix}" for suffix in FORMATS]
    files = [folder / name for name in names if (folder / name).is_file()]
    if len(files) > 1:
        joined = " and ".join(path.name for path in files)
        message = f"both {joined} exist, and only one can be the {stem} table"
        diagnostics.of(stem).add("two-tables", message, "remove or rename one")
    if files:
        return TableReader(files[0], options, diagnostics.of(files[0].name), hold)
    others = [name for name in names if os.path.lexists(folder / name)]
    if others:
        remedy = "put a plain file in its place; pipes, devices and folders are not read"
        diagnostics.of(others[0]).add("not-a-file", "it is not a regular file", remedy)
        return None
    present = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    message = f"the folder has no {stem}.csv, {stem}.tsv or {stem}.parquet; it holds {listed(present) or 'nothing'}"
    diagnostics.of(f"{stem}.csv").add("no-table", message, _remedy(stem, folder, present))
    return None


def _remedy(stem: str, folder: Path, present: list[str]) -> str:
    matches = get_close_matches(stem, present, n=1, cutoff=0.5)
    if not matches:
        return f"put the {stem} table into {folder} under one of these names"
    if matches[0].endswith((".gz", ".zip", ".bz2", ".xz", ".zst")):
        return f"unpack {matches[0]!r} if that is it; a table is a plain .csv or .tsv file, or a .parquet file"
    if matches[0].endswith((".xlsx", ".xls", ".ods")):
        return f"save the sheet of {matches[0]!r} as 'CSV UTF-8' under the name {stem}.csv if that is it"
    return f"rename {matches[0]!r} if that is it; a table is a .csv, .tsv or .parquet file"


@contextmanager
def explain_memory_errors(path: str, remedy: str) -> Iterator[None]:
    """Raise `OutOfMemory` with a remedy if memory runs out inside the block."""
    try:
        yield
    except BangsError:
        raise
    except Exception as error:
        if not ran_out(error):
            raise
        free = gib(available_memory())
        raise OutOfMemory(f"reading '{path}' needs more memory than is free ({free}); {remedy}") from error
