"""CSV that any reader splits into the cells that were written."""

import csv
import io

import pytest

from bangs.utils.csv_safe import to_csv


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_a_line_end_inside_a_cell_ends_no_row(end: str) -> None:
    rows = [["a", "b"], [f"x{end}=HYPERLINK(1)", 1], ["y", f"{end}+1"]]
    text = to_csv(rows[0], rows[1:])
    assert text.startswith(f'a,b\n"x{end}=HYPERLINK(1)",1\n')
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert len(read) == 3
    assert read[1] == [f"x{end}=HYPERLINK(1)", "1"]
    assert not any(cell.startswith(("=", "+", "@")) for row in read for cell in row)


def test_rows_end_with_a_line_feed_alone() -> None:
    assert to_csv(["a"], [["b"], [2]]) == "a\nb\n2\n"
