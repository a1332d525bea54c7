"""Cells: tables whose text a spreadsheet shows and does not run."""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

PIECE = 2**14  # rows
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in the CSV of RFC 4180, cells made escape_controls by `cell`."""
    return "".join(csv_pieces(header, rows))


def csv_pieces(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The same table, some thousand rows at a time."""
    lines = chain([header], rows)
    while piece := list(islice(lines, PIECE)):
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([cell(value) if isinstance(value, str) else value for value in row] for row in piece)
        yield out.getvalue()


def cell(text: str) -> str:
    """A text as a spreadsheet should show it: what it would take for a formula gets a ' in front.

    Such are words that begin with =, +, -, @, a tab or a carriage return and are no numbers.
    """
    if not text.startswith(_FORMULA):
        return text
    try:
        return text if math.isfinite(float(text)) and text == text.strip() else f"'{text}"
    except ValueError:
        return f"'{text}"
