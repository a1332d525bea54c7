"""Read a column of text as numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import quoted
from bangs.graphs.tables.table import Table, is_any_of

MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-")
MAX_MAGNITUDE = 1e30  # fits a 32-bit float, and its square fits a double
MAJORITY = 0.5  # a column with a larger share of numbers is numeric

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
_DECIMAL_COMMA = r"^[+-]?\d+,\d+$"
_CODE = r"^[+-]?0\d"
_SIGNS = r"[,'\s%$€£¥]"


@dataclass(frozen=True, eq=False)
class Numbers:
    """The number in each cell of a column."""

    values: npt.NDArray[np.float64]  # [n], NaN where there is no number
    missing: npt.NDArray[np.bool_]  # [n], blank, or a placeholder such as NA
    wrong: npt.NDArray[np.bool_]  # [n], text that is not a number


def read_numbers(table: Table, name: str, notes: list[str]) -> Numbers:
    """The numbers of a column; decimal commas are allowed unless the comma separates the columns."""
    cells = table.columns[name]
    plain = numbers(cells)
    if plain.wrong.any() and table.delimiter != ",":
        is_comma_number = pc.match_substring_regex(cells, _DECIMAL_COMMA)
        with_commas = numbers(pc.if_else(is_comma_number, pc.replace_substring(cells, ",", "."), cells))
        if with_commas.wrong.sum() < plain.wrong.sum():
            present = int((~with_commas.missing).sum())  # not 0, since some cell is not missing but wrong
            if 1 - int(with_commas.wrong.sum()) / present > MAJORITY:
                column = f"{table.diagnostics.file}: column {quoted(name)}"
                notes.append(f"{column} is written with decimal commas; read so, 1,234 as 1.234")
            return with_commas
    return plain


def numbers(column: Any) -> Numbers:
    """The numbers of a text column [n]; 1.5 and 1e3 are numbers, 1,5 is not."""
    try:
        # most columns are clean, and a cast is ten times as fast as a regular expression
        values = as_floats(column, pc.equal(column, ""))
        missing = np.isnan(values)
        return Numbers(values, missing, np.zeros(len(values), dtype=bool))
    except pa.ArrowInvalid:
        pass
    missing = is_missing(column)
    number = np.asarray(pc.match_substring_regex(column, _NUMBER))
    wrong = ~number & ~missing
    return Numbers(as_floats(column, pa.array(~number)), missing, wrong)


def is_missing(column: Any) -> npt.NDArray[np.bool_]:
    """Where a cell is blank or a placeholder such as NA: bool [n]."""
    return is_any_of(pc.utf8_lower(column), MISSING)


def is_zero_padded(column: Any) -> bool:
    """Whether digits are codes: some cell has a leading zero, as in 007."""
    return bool(pc.any(pc.match_substring_regex(column, _CODE)).as_py())


def without_signs(column: Any) -> Numbers:
    """The numbers of a text column after signs such as those of 1,234 and 45 % and $3 are removed."""
    return numbers(pc.replace_substring_regex(column, _SIGNS, ""))


def as_floats(column: Any, blank: Any) -> npt.NDArray[np.float64]:
    """The cells as numbers, NaN where `blank` is true: float [n]."""
    present = pc.if_else(blank, pa.scalar(None, pa.string()), column)
    return np.array(pc.cast(present, pa.float64()), dtype=np.float64)
