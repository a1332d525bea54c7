"""Read a column of text as days since 1970."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from bangs.graphs.tables.numbers import as_floats

Days = npt.NDArray[np.float64]

YEAR = 365.25  # days
_TIME = r"(?:[T ](?P<h>\d{2}):(?P<min>\d{2})(?::(?P<s>\d{2}(?:\.\d+)?))?(?:Z|[+-]\d{2}:?\d{2})?)?$"
_YEAR, _MONTH, _DAY = r"(?P<y>\d{4})", r"(?P<m>\d{1,2})", r"(?P<d>\d{1,2})"
FORMATS: Mapping[str, str] = {
    "year-month-day": rf"^{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_TIME}",
    "day.month.year": rf"^{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}",
    "day/month/year": rf"^{_DAY}[-/]{_MONTH}[-/]{_YEAR}{_TIME}",
    "month/day/year": rf"^{_MONTH}[-/]{_DAY}[-/]{_YEAR}{_TIME}",
}


def any_dates(cells: Any) -> bool:
    """Whether some cell looks like a date in any format."""
    return bool(pc.any(pc.match_substring_regex(cells, r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")).as_py())


def read_dates(cells: Any, form: str) -> Days:
    """Days since 1970-01-01, with the time of day as a fraction, NaN if a cell is not a date: float [n]."""
    parts = pc.extract_regex(cells, FORMATS[form])
    if hasattr(parts, "combine_chunks"):
        parts = parts.combine_chunks()
    texts = (pc.struct_field(parts, name) for name in ("y", "m", "d", "h", "min", "s"))
    year, month, day, hour, minute, second = (np.nan_to_num(as_floats(text, pc.equal(text, ""))) for text in texts)
    months = (year - 1970) * 12 + month - 1
    month_start = months.astype("datetime64[M]").astype("datetime64[D]")
    date = month_start + (day - 1).astype("timedelta64[D]")
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (date.astype("datetime64[M]").astype(np.int64) == months)
    days = date.astype(np.int64) + hour / 24 + minute / 1440 + second / 86400
    return np.where(valid & np.asarray(parts.is_valid()), days, np.nan)


def time_of_year(days: Days) -> npt.NDArray[np.float64]:
    """Sine and cosine of the part of the year that has passed: float [n, 2]."""
    date = np.floor(np.nan_to_num(days)).astype(np.int64).astype("datetime64[D]")
    passed = (date - date.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64)
    angle = 2 * np.pi * passed / YEAR
    return np.column_stack([np.sin(angle), np.cos(angle)])
