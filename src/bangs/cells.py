"""Cells: tables whose text a spreadsheet shows and does not run."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in the CSV of RFC 4180, cells made harmless by `cell`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(name) for name in header])
    for row in rows:
        writer.writerow([cell(value) if isinstance(value, str) else value for value in row])
    return out.getvalue()


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
