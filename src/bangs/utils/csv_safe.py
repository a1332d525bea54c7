"""CSV tables whose text a spreadsheet shows and does not run as a formula."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

CHUNK_ROWS = 2**14
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in the CSV of RFC 4180, with every text made safe by `cell`."""
    return "".join(csv_pieces(header, rows))


def csv_pieces(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The same table, some thousand rows at a time."""
    lines = chain([header], rows)
    while piece := list(islice(lines, CHUNK_ROWS)):
        out = _Lines()
        # Python up to 3.12 quotes only the line ends that it writes itself
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerows([cell(value) if isinstance(value, str) else value for value in row] for row in piece)
        yield "".join(out)


class _Lines(list[str]):
    """The lines that a csv.writer writes, each ended by a line feed alone."""

    def write(self, line: str) -> None:
        self.append(f"{line[:-2]}\n")


def cell(text: str) -> str:
    """A text that a spreadsheet does not take for a formula: one that begins like a formula gets a ' in front.

    Formulas begin with =, +, -, @, a tab or a carriage return. Numbers stay as they are.
    """
    if not text.startswith(FORMULA):
        return text
    try:
        return text if math.isfinite(float(text)) and text == text.strip() else f"'{text}"
    except ValueError:
        return f"'{text}"
