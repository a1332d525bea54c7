"""Delimited: a CSV or TSV file of unknown manners as a table of text."""

import codecs
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from bangs.graphs.tables.diagnostics import SHOWN, Diagnostics, counted, quoted
from bangs.graphs.tables.table import Limits, Table, named, tabled

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_HEAD = 2**20
_BLOCK = 2**24
_FOREIGN = {
    b"PK\x03\x04": ("an Excel workbook or another zip archive", "save the sheet as 'CSV UTF-8'"),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save the sheet as 'CSV UTF-8'"),
    b"\x1f\x8b": ("compressed with gzip", "unpack it"),
    b"PAR1": ("a Parquet file", "let its name end in .parquet"),
}


def read_delimited(path: Path, diagnostics: Diagnostics, notes: list[str], limits: Limits) -> Table | None:
    """The table of a .csv or .tsv file, or None after complaining."""
    file = path.name
    head = head_of(path, diagnostics, notes)
    if head is None:
        return None
    delimiter, header, bare = header_of(head, "\t" if path.suffix == ".tsv" else ",")
    if not any(header):
        diagnostics.add("no-header", file, "the first row is blank", "let the first row name the columns")
        return None
    if len(header) > limits.columns:
        diagnostics.add(
            "too-wide",
            file,
            f"it has {len(header):,} columns, {limits.columns:,} are allowed",
            "keep wide features as an array in features.npz",
        )
        return None
    if delimiter != ("\t" if path.suffix == ".tsv" else ","):
        notes.append(f"{file} is separated by {DELIMITERS[delimiter]}; read so")
    names = named(header, file, diagnostics)
    if bare:
        return Table(file, {name: pa.chunked_array([[]], pa.string()) for name in names if name}, np.empty(0, np.int64))
    try:
        raw, rows = _parsed(path, delimiter, len(header), diagnostics)
    except pa.ArrowInvalid as error:
        explain(path, str(error), diagnostics)
        return None
    if len(raw) and "\n" in raw.column(raw.num_columns - 1)[-1].as_py() and not _ends_quoted(path):
        diagnostics.add(
            "open-quote",
            file,
            'a quotation mark (") is opened here and never closed, so the rest of the file is one cell',
            "close it, or double it if it belongs to the text",
            row=int(rows[-1]),
        )
    return tabled(file, names, raw.columns, rows, delimiter)


def head_of(path: Path, diagnostics: Diagnostics, notes: list[str]) -> str | None:
    """The beginning of a file as text, without its byte-order mark."""
    file = path.name
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    for magic, (what, remedy) in _FOREIGN.items():
        if head.startswith(magic):
            diagnostics.add("not-text", file, f"it is {what}, not a table of text", remedy)
            return None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        diagnostics.add("not-utf8", file, "it is written in UTF-16", "save it as 'CSV UTF-8'")
        return None
    if b"\0" in head:
        diagnostics.add("not-text", file, "it holds binary data", "save it as a table of text in UTF-8")
        return None
    if head.startswith(codecs.BOM_UTF8):
        notes.append(f"{file} begins with a byte-order mark; skipped")
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=len(head) < _HEAD)
    except UnicodeDecodeError as error:
        _undecodable(file, head[error.start], head[: error.start].count(b"\n") + 1, diagnostics)
        return None
    if not text.strip():
        diagnostics.add("empty", file, "the file is empty", "let the first row name the columns, one row each below it")
        return None
    if text.startswith("#"):
        diagnostics.add(
            "comment",
            file,
            f"it begins with a comment, {quoted(text.splitlines()[0])}",
            "delete such rows, or the # alone where the row names the columns",
            row=1,
        )
        return None
    return text


def header_of(text: str, expected: str) -> tuple[str, list[str], bool]:
    """The delimiter, the cells of the first row, and whether nothing follows it."""
    header, second = _first_rows(text, expected)
    delimiter = expected
    if len(header) == 1:
        for other in DELIMITERS:
            cells, below = _first_rows(text, other)
            if len(cells) > len(header) and len(below) in (0, len(cells)):
                delimiter, header, second = other, cells, below
    return delimiter, [cell.strip() for cell in header], not second


def _first_rows(text: str, delimiter: str) -> tuple[list[str], list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(reader, [])
        return header, next((row for row in reader if any(row)), [])
    except csv.Error:
        return [], []


def _parsed(path: Path, delimiter: str, width: int, diagnostics: Diagnostics) -> tuple[Any, npt.NDArray[np.int64]]:
    """All cells as text, and the row number of each row; rows of another length are complained about and skipped."""
    try:
        table = _read(path, delimiter, width, None)
        return table, np.arange(2, 2 + len(table))
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error) or _bad_byte(path) is not None:
            raise
    # only a reader with one thread knows row numbers
    skipped: list[int] = []
    wrong: list[tuple[int, int, str]] = []

    def skip(row: Any) -> str:
        skipped.append(row.number)
        if row.text.strip():
            wrong.append((row.number, row.actual_columns, row.text if len(wrong) < SHOWN else ""))
        return "skip"

    table = _read(path, delimiter, width, skip)
    if wrong:
        hint = " (is a quotation mark not closed?)" if any('"' in text for *_, text in wrong) else ""
        diagnostics.add_rows(
            "ragged-row",
            path.name,
            [number for number, *_ in wrong],
            lambda i: f"it has {counted(wrong[i][1], 'value')}, the header has {width}: {quoted(wrong[i][2])}",
            f"every row needs one value per column, and a value with {in_words(delimiter)} in it needs quotes{hint}",
        )
    return table, np.setdiff1d(np.arange(2, 2 + len(table) + len(skipped)), skipped, assume_unique=True)


def _read(path: Path, delimiter: str, width: int, on_wrong: Any) -> Any:
    names = [str(place) for place in range(width)]
    return pacsv.read_csv(
        str(path),
        read_options=pacsv.ReadOptions(
            column_names=names, skip_rows_after_names=1, block_size=_BLOCK, use_threads=on_wrong is None
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=on_wrong
        ),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=True
        ),
    )


def explain(path: Path, error: str, diagnostics: Diagnostics) -> None:
    bad = _bad_byte(path)
    if bad is not None:
        _undecodable(path.name, *bad, diagnostics)
        return
    reason = "a row is longer than 16 MiB" if "straddling" in error else error.splitlines()[0]
    diagnostics.add(
        "unreadable", path.name, f"it cannot be parsed: {reason}", "look for a quotation mark that is not closed"
    )


def _bad_byte(path: Path) -> tuple[int, int] | None:
    """The first byte that is no UTF-8, and its row."""
    with path.open("rb") as stream:
        for row, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as problem:
                return line[problem.start], row
    return None


def _undecodable(file: str, byte: int, row: int, diagnostics: Diagnostics) -> None:
    diagnostics.add(
        "not-utf8",
        file,
        f"it is not UTF-8 text (byte 0x{byte:02x}); it may be Latin-1 or Windows-1252",
        "save it as 'CSV UTF-8', or run: iconv -f windows-1252 -t utf-8",
        row=row,
    )


def _ends_quoted(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - 4096, 0))
        return stream.read().rstrip().endswith(b'"')


def in_words(delimiter: str) -> str:
    return {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "a space"}[delimiter]
