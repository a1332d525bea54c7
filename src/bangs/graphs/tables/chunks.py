"""Streaming: a table of any length, a piece at a time, with the row numbers of the file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from bangs.graphs.tables.delimited import DELIMITERS, explain, head_of, header_of
from bangs.graphs.tables.diagnostics import Diagnostics, counted, quoted
from bangs.graphs.tables.parquet import as_text
from bangs.graphs.tables.table import Limits, Table, named, tabled

BLOCK = 2**24  # bytes of text, or of a row group's rows, read at once
ROWS = 2**18


@dataclass(frozen=True, eq=False)
class Pieces:
    """A table that is read from front to back as often as it is asked for; mistakes are told the first time only."""

    path: Path
    ignore: tuple[str, ...]
    diagnostics: Diagnostics
    notes: list[str]
    limits: Limits
    _read: list[bool] = field(default_factory=list)

    def __iter__(self) -> Iterator[Table]:
        first = not self._read
        self._read.append(True)
        diagnostics = self.diagnostics if first else Diagnostics(self.diagnostics.where)
        read = self._parquet if self.path.suffix == ".parquet" else self._delimited
        yield from read(diagnostics, self.notes if first else [])

    @property
    def first(self) -> Table | None:
        """The first piece, of which nothing is told; None where none can be read."""
        return next(iter(Pieces(self.path, self.ignore, Diagnostics(self.diagnostics.where), [], self.limits)), None)

    def _delimited(self, diagnostics: Diagnostics, notes: list[str]) -> Iterator[Table]:
        file = self.path.name
        head = head_of(self.path, diagnostics, notes)
        if head is None:
            return
        usual = "\t" if self.path.suffix == ".tsv" else ","
        delimiter, header, bare = header_of(head, usual)
        if not any(header):
            diagnostics.add("no-header", file, "the first row is blank", "let the first row name the columns")
            return
        if delimiter != usual:
            notes.append(f"{file} is separated by {DELIMITERS[delimiter]}; read so")
        names = named(header, file, diagnostics)
        if bare:
            return
        wrong = _Wrong(file, len(header), diagnostics)
        try:
            with pacsv.open_csv(
                str(self.path),
                read_options=pacsv.ReadOptions(
                    column_names=[str(place) for place in range(len(header))],
                    skip_rows_after_names=1,
                    block_size=BLOCK,
                    use_threads=False,  # only one thread knows row numbers
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=wrong
                ),
                convert_options=pacsv.ConvertOptions(
                    column_types={str(place): pa.string() for place in range(len(header))},
                    strings_can_be_null=False,
                    check_utf8=True,
                ),
            ) as stream:
                row = 2
                for batch in stream:
                    rows = wrong.numbers(row, batch.num_rows)
                    row = int(rows[-1]) + 1 if len(rows) else row
                    table = pa.Table.from_batches([batch])
                    yield tabled(file, names, table.columns, rows, delimiter)
        except pa.ArrowInvalid as error:
            explain(self.path, str(error), diagnostics)

    def _parquet(self, diagnostics: Diagnostics, notes: list[str]) -> Iterator[Table]:
        file = self.path.name
        try:
            with pq.ParquetFile(self.path) as stream:
                names = named(stream.schema_arrow.names, file, diagnostics)
                row = 1
                for batch in stream.iter_batches(batch_size=ROWS):
                    columns: list[Any] = []
                    for place, name in enumerate(names):
                        column = pa.chunked_array([batch.column(place)])
                        text = None if name is None else as_text(column, self.limits, blank=name in self.ignore)
                        columns.append(text)
                        if text is None and name is not None:
                            diagnostics.add(
                                "column-type",
                                file,
                                f"column {name!r} holds {column.type}, which is neither number nor text",
                                f"leave the column out with --ignore {name}",
                            )
                        if text is None:
                            names[place] = None
                    yield tabled(file, names, columns, np.arange(row, row + batch.num_rows))
                    row += batch.num_rows
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            reason = (str(error).splitlines() or ["damaged"])[0]
            diagnostics.add(
                "unreadable", file, f"it is no readable Parquet file: {reason}", "write it again, or as .csv"
            )


class _Wrong:
    """Rows of another length than the header: complained about, skipped, and left out of the numbering."""

    def __init__(self, file: str, width: int, diagnostics: Diagnostics):
        self.file, self.width, self.diagnostics = file, width, diagnostics
        self.skipped: list[int] = []

    def __call__(self, row: Any) -> str:
        self.skipped.append(row.number)
        if row.text.strip():
            self.diagnostics.add(
                "ragged-row",
                self.file,
                f"it has {counted(row.actual_columns, 'value')}, the header has {self.width}: {quoted(row.text)}",
                "every row needs one value per column, and a value with the separator in it needs quotes",
                row=row.number,
            )
        return "skip"

    def numbers(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """The numbers of the next rows that were read."""
        ahead = [row for row in self.skipped if row >= first]
        rows = np.arange(first, first + count + len(ahead))
        return np.setdiff1d(rows, ahead, assume_unique=True)[:count] if ahead else rows
