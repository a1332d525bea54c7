"""Read a CSV or TSV file with any separator in pieces that know the row numbers of the file."""

import codecs
import csv
import io
import threading
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, quoted
from bangs.graphs.tables.table import Limits, Table, column_names, trimmed_table

BLOCK_BYTES = 2**24  # bytes of text read at once
_HEAD_BYTES = 2**20
_DELIMITERS = {
    ",": ("commas", "a comma"),
    ";": ("semicolons", "a semicolon"),
    "\t": ("tabs", "a tab"),
    "|": ("bars", "a bar"),
    " ": ("spaces", "a space"),
}
_OTHER_FORMATS = {
    b"PK\x03\x04": ("an Excel workbook or another zip archive", "save the sheet as 'CSV UTF-8'"),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save the sheet as 'CSV UTF-8'"),
    b"\x1f\x8b": ("compressed with gzip", "unpack it"),
    b"PAR1": ("a Parquet file", "let its name end in .parquet"),
}


def read_delimited(path: Path, diagnostics: FileDiagnostics, limits: Limits) -> Iterator[Table]:
    """The pieces of a .csv or .tsv file; none if its head cannot be used, which is reported."""
    expected = "\t" if path.suffix == ".tsv" else ","
    text = _read_head(path, diagnostics)
    if text is None:
        return
    delimiter, header, no_rows = _header(text, expected)
    if header is None or not any(header):
        problem = "is blank" if header is not None else f"has a cell of more than {csv.field_size_limit():,} letters"
        diagnostics.add("no-header", f"the first row {problem}", "write the column names in the first row")
        return
    if len(header) > limits.columns:
        diagnostics.add(
            "too-wide",
            f"it has {len(header):,} columns, {limits.columns:,} are allowed",
            "keep wide features as an array in features.npz",
        )
        return
    if delimiter != expected:
        diagnostics.all_files.notes.append(f"{path.name} is separated by {_DELIMITERS[delimiter][0]}; read so")
    names = column_names(header, diagnostics)
    if no_rows:
        return
    wrong_rows = _WrongRows(len(header), delimiter, diagnostics)
    try:
        row, last = 2, ""
        for batch in _batches(path, delimiter, len(header), wrong_rows.handler()):
            rows = wrong_rows.numbers(row, batch.num_rows)
            if len(rows):
                row, last = int(rows[-1]) + 1, batch.column(len(header) - 1)[-1].as_py()
            yield trimmed_table(diagnostics, names, pa.Table.from_batches([batch]).columns, rows, delimiter)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        _report_unreadable(path, str(error), diagnostics)
        return
    finally:
        wrong_rows.dropped.wait(timeout=1)
    if "\n" in last and not _ends_quoted(path):
        diagnostics.add(
            "open-quote",
            'a quotation mark (") is opened here and never closed, so the rest of the file is one cell',
            "close it, or double it if it belongs to the text",
            row=row - 1,
        )


def _batches(path: Path, delimiter: str, width: int, on_wrong_row: Any) -> Iterator[Any]:
    names = [str(number) for number in range(width)]
    stream = pacsv.open_csv(
        str(path),
        read_options=pacsv.ReadOptions(
            column_names=names,
            skip_rows_after_names=1,
            block_size=BLOCK_BYTES,
            use_threads=False,  # row numbers are known to a single thread only
            encoding="utf-8-sig",  # Python decodes it, and refuses wrong bytes before rows are parsed
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=on_wrong_row
        ),
        convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )
    del on_wrong_row  # Arrow must hold the last reference, see `_WrongRows.handler`
    with stream:
        yield from stream


class _WrongRows:
    """Reports and skips rows with more or fewer values than the header, and numbers the other rows."""

    def __init__(self, width: int, delimiter: str, diagnostics: FileDiagnostics):
        self.width, self.diagnostics = width, diagnostics
        separator = _DELIMITERS[delimiter][1]
        self.remedy = f"every row needs one value per column, and a value with {separator} in it needs quotes"
        self.skipped: list[int] = []
        self.dropped = threading.Event()

    def handler(self) -> Any:
        """A reference to this object for Arrow; `dropped` is set once Arrow has dropped it.

        Arrow's reading thread drops it a moment after the last row. A program that ends before that is aborted.
        """
        handler = self.__call__
        weakref.finalize(handler, self.dropped.set)
        return handler

    def __call__(self, row: Any) -> str:
        self.skipped.append(row.number)
        if row.text.strip():
            self.diagnostics.add(
                "ragged-row",
                f"it has {counted(row.actual_columns, 'value')}, the header has {self.width}: {quoted(row.text)}",
                self.remedy + (" (is a quotation mark not closed?)" if '"' in row.text else ""),
                row=row.number,
            )
        return "skip"

    def numbers(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """The numbers of the next `count` rows that were not skipped."""
        skipped = [row for row in self.skipped if row >= first]
        rows = np.arange(first, first + count + len(skipped))
        return np.setdiff1d(rows, skipped, assume_unique=True)[:count] if skipped else rows


def _read_head(path: Path, diagnostics: FileDiagnostics) -> str | None:
    """The first MiB of a file as text, without its byte-order mark; None if it cannot be used, which is reported."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    for magic, (what, remedy) in _OTHER_FORMATS.items():
        if head.startswith(magic):
            diagnostics.add("not-text", f"it is {what}, not a table of text", remedy)
            return None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        diagnostics.add("not-utf8", "it is written in UTF-16", "save it as 'CSV UTF-8'")
        return None
    if b"\0" in head:
        diagnostics.add("not-text", "it holds binary data", "save it as a table of text in UTF-8")
        return None
    if head.startswith(codecs.BOM_UTF8):
        diagnostics.all_files.notes.append(f"{path.name} begins with a byte-order mark; skipped")
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=len(head) < _HEAD_BYTES)
    except UnicodeDecodeError:
        _report_bad_byte(io.BytesIO(head), diagnostics)
        return None
    if not text.strip():
        diagnostics.add("empty", "the file is empty", "write the column names in the first row, and the values below")
        return None
    if text.startswith("#"):
        diagnostics.add(
            "comment",
            f"it begins with a comment, {quoted(text.splitlines()[0])}",
            "delete such rows, or the # alone where the row names the columns",
            row=1,
        )
        return None
    return text


def _header(text: str, expected: str) -> tuple[str, list[str] | None, bool]:
    """The delimiter, the cells of the first row (None if one is too long), and whether the table has no more rows."""
    header, second = _first_rows(text, expected)
    delimiter = expected
    if header is not None and len(header) == 1:
        for candidate in _DELIMITERS:
            cells, below = _first_rows(text, candidate)
            if cells is not None and len(cells) > len(header) and (not below or len(below) == len(cells)):
                delimiter, header, second = candidate, cells, below
    return delimiter, None if header is None else [cell.strip() for cell in header], second == []


def _first_rows(text: str, delimiter: str) -> tuple[list[str] | None, list[str] | None]:
    """The first row, and the first row below it that is not blank; None for a row with a cell too long to parse."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header: list[str] | None = None
    try:
        header = next(reader, [])
        return header, next((row for row in reader if any(row)), [])
    except csv.Error:
        return header, None


def _report_unreadable(path: Path, error: str, diagnostics: FileDiagnostics) -> None:
    """Report why a file cannot be parsed."""
    with path.open("rb") as stream:
        if _report_bad_byte(stream, diagnostics):
            return
    reason = "a row is longer than 16 MiB" if "straddling" in error else error.splitlines()[0]
    diagnostics.add("unreadable", f"it cannot be parsed: {reason}", "look for a quotation mark that is not closed")


def _report_bad_byte(lines: Iterable[bytes], diagnostics: FileDiagnostics) -> bool:
    """Report the first byte that is not UTF-8; whether there is one."""
    for row, line in enumerate(lines, start=1):
        try:
            line.decode()
        except UnicodeDecodeError as problem:
            message = f"it is not UTF-8 text (byte 0x{line[problem.start]:02x}); it may be Latin-1 or Windows-1252"
            remedy = "save it as 'CSV UTF-8', or run: iconv -f windows-1252 -t utf-8"
            diagnostics.add("not-utf8", message, remedy, row)
            return True
    return False


def _ends_quoted(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - 4096, 0))
        return stream.read().rstrip().endswith(b'"')
