"""Statistics of a table's columns, collected piece by piece, and the encoding that follows from them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.feature_units import median_ratios, units_differ
from bangs.graphs.tables.dates import FORMATS, YEAR, any_dates, read_dates
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed
from bangs.graphs.tables.fitted_encoding import Categorical, Column, Date, Numeric
from bangs.graphs.tables.numbers import MAJORITY, MAX_MAGNITUDE, is_missing, is_zero_padded, read_numbers, without_signs
from bangs.graphs.tables.table import Table

MIN_SAME_UNIT = 32  # this many number columns of one unit, as embeddings have, are not standardised
MAX_LEVELS = 50  # categories of a column; rarer ones become "other"
MAX_COUNT = 20  # integers from 0 to this are counts, which are not standardised
MIN_NAMES = 10  # this many cells, all different, are names and not categories
MAX_DISTINCT = 100_000  # values of a column that are counted


@dataclass
class ValueCounts:
    """How often every value of a column occurs; counting stops beyond 100,000 different values."""

    counter: "Counter[str]" = field(default_factory=Counter)
    too_many: bool = False

    def add(self, cells: Any) -> None:
        """Add a piece of the column."""
        if self.too_many:
            return
        values, numbers = pc.value_counts(cells).flatten()
        self.counter.update(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))
        if len(self.counter) > MAX_DISTINCT:
            self.too_many = True
            self.counter.clear()


@dataclass
class Moments:
    """Count, mean, variance and range of numbers, updated piece by piece (Chan et al. 1979)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # Σ (value − mean)²
    low: float = math.inf
    high: float = -math.inf
    integral: bool = True
    zeros: int = 0

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add a piece; NaN, infinity and numbers beyond ±1e30 are skipped."""
        with np.errstate(invalid="ignore"):
            values = values[np.abs(values) <= MAX_MAGNITUDE]
        if not len(values):
            return
        total, mean = self.count + len(values), float(values.mean())
        self.squares += float(((values - mean) ** 2).sum())
        self.squares += (mean - self.mean) ** 2 * self.count * len(values) / total
        self.mean += (mean - self.mean) * len(values) / total
        self.count = total
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.integral = self.integral and bool((values == np.floor(values)).all())
        self.zeros += int((values == 0).sum())

    @property
    def scale(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0


@dataclass
class ColumnStatistics:
    """What one column holds so far: numbers, dates, words and blanks; `encoding` decides what becomes of it."""

    name: str
    diagnostics: FileDiagnostics
    categorical: bool  # the user wants categories
    scaling: str = "auto"  # of numbers, see `ReadOptions.scale`
    rows: int = 0
    missing: int = 0
    wrong: int = 0
    with_signs: int = 0  # cells that are numbers without signs such as those of 1,234 and 45 % and $3
    numbers: Moments = field(default_factory=Moments)
    dates: dict[str, Moments] = field(default_factory=lambda: {form: Moments() for form in FORMATS})
    codes: bool = False  # some cell has a leading zero, as in 007
    uncounted: bool = False  # some pieces held numbers only, and their values were not counted
    notes: list[str] = field(default_factory=list)  # about how the numbers are written
    counts: ValueCounts = field(default_factory=ValueCounts)

    def add(self, table: Table) -> None:
        """Add a piece of the table."""
        cells = table.columns[self.name]
        blank = is_missing(cells)
        numbers = read_numbers(table, self.name, self.notes)
        self.rows += len(cells)
        self.missing += int(blank.sum())
        wrong = int(numbers.wrong.sum())
        self.wrong += wrong
        if wrong:
            self.with_signs += int(np.isfinite(without_signs(cells).values).sum())
            for form, days in self.dates.items() if any_dates(cells) else ():
                days.add(read_dates(cells, form))
        self.codes = self.codes or is_zero_padded(cells)
        self.numbers.add(numbers.values)
        if self.categorical or self.wrong or self.codes:
            self.counts.add(cells.filter(pa.array(~blank)) if blank.any() else cells)
        else:
            self.uncounted = True

    @property
    def is_categorical(self) -> bool:
        """Whether the column becomes categories."""
        present = self.rows - self.missing
        few_numbers = present > 0 and 1 - self.wrong / present <= MAJORITY
        return self.categorical or few_numbers or (self.wrong == 0 and self.codes)

    def recount(self, tables: Iterable[Table]) -> None:
        """Count the values of all pieces, if the first pieces held numbers and were not counted."""
        if self.is_categorical and self.uncounted:
            self.counts = ValueCounts()
            for table in tables:
                cells = table.columns[self.name]
                self.counts.add(cells.filter(pa.array(~is_missing(cells))))

    def encoding(self) -> Column | None:
        """How the column becomes features; None if it is left out."""
        present = self.rows - self.missing
        if present == 0:
            self._leave_out("is blank throughout")
            return None
        if not self.is_categorical:
            self.diagnostics.all_files.notes += dict.fromkeys(self.notes)
            return self._numeric()
        formats = [] if self.categorical else self._date_formats(present)
        if len(formats) == 1:
            return self._date(formats[0])
        if formats:
            example = next(iter(self.counts.counter), "")
            self._note(
                f"holds dates such as {example!r}, where day and month cannot be told apart; taken as "
                "words. Write them as year-month-day"
            )
        elif not self.categorical and self.wrong == 0:
            self._note("holds digits that begin with 0; taken as categories")
        elif not self.categorical and self.with_signs > MAJORITY * present:
            self._note("holds numbers with signs as in 1,234 or 45 % or $3, which are read as words; write them plain")
        return self._categories(present)

    def _date_formats(self, present: int) -> list[str]:
        """The formats in which most cells are dates, if any; two if day and month cannot be told apart."""
        most = max(days.count for days in self.dates.values())
        return [form for form, days in self.dates.items() if days.count == most] if most > MAJORITY * present else []

    def _date(self, form: str) -> Date | None:
        days = self.dates[form]
        if days.low >= days.high and days.count == self.rows - self.missing:
            self._leave_out("has one value throughout")
            return None
        yearly = days.high - days.low > YEAR
        also = ", sine and cosine of the time of year" if yearly else ""
        self._note(f"holds dates ({form}), which become days since 1970{also}")
        return Date(self.name, days.mean, days.scale or 1.0, form, yearly)

    def _numeric(self) -> Numeric | None:
        numbers = self.numbers
        if self.wrong == 0 and numbers.low >= numbers.high:
            self._leave_out("has one value throughout")
            return None
        # differences in the last digits are rounding errors, except between integers
        rounding = numbers.scale <= 1e-12 * abs(numbers.mean) and not numbers.integral
        if self.wrong == 0 and (numbers.scale == 0 or rounding):
            self._leave_out(f"differs in its last digits only, from {numbers.low!r} to {numbers.high!r}")
            return None
        is_count = numbers.integral and numbers.low >= 0 and numbers.high <= MAX_COUNT
        if self.scaling == "none" or (self.scaling == "auto" and is_count):
            return Numeric(self.name, numbers.mean, 1.0, centred=False)
        return Numeric(self.name, numbers.mean, numbers.scale or 1.0)

    def _categories(self, present: int) -> Categorical | None:
        counter = self.counts.counter
        levels = sorted(counter, key=lambda level: (-counter[level], level))
        if len(levels) == present >= MIN_NAMES:
            self._leave_out("has a different word in every cell, which makes no categories")
            return None
        if self.counts.too_many or (len(levels) > MAX_LEVELS and 2 * len(levels) > present):
            count = f"more than {MAX_DISTINCT:,}" if self.counts.too_many else f"{len(levels):,}"
            self._leave_out(f"has {count} different words in {present:,} cells, too many for categories")
            return None
        if len(levels) < 2:
            self._leave_out("has one value throughout")
            return None
        if self.missing:
            self.diagnostics.note(f"no category for {counted(self.missing, 'blank')} of column {self.name!r}")
        if len(levels) > MAX_LEVELS:
            self._note(f"has {len(levels):,} categories; the {MAX_LEVELS} most frequent are kept, others as one")
        return Categorical(self.name, tuple(sorted(levels[:MAX_LEVELS])), other=len(levels) > MAX_LEVELS)

    def _note(self, sentence: str) -> None:
        self.diagnostics.note(f"column {self.name!r} {sentence}")

    def _leave_out(self, reason: str) -> None:
        self._note(f"{reason}; left out")


def column_encodings(statistics: Sequence[ColumnStatistics]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """How columns become features, and the names of the columns that are left out."""
    encodings = {column.name: column.encoding() for column in statistics}
    standardised = [
        column
        for column in statistics
        if column.scaling == "auto" and isinstance(encoding := encodings[column.name], Numeric) and encoding.centred
    ]
    if len(standardised) >= MIN_SAME_UNIT:
        numbers = [column.numbers for column in standardised]
        zeros = np.array([moments.zeros / max(moments.count, 1) for moments in numbers])
        deviations = np.array([moments.scale for moments in numbers])
        if not units_differ(deviations, zeros):
            for column, ratio in zip(standardised, median_ratios(deviations, zeros).tolist(), strict=True):
                encodings[column.name] = Numeric(column.name, column.numbers.mean, ratio, centred=ratio != 1)
    used = tuple(encoding for encoding in encodings.values() if encoding is not None)
    return used, tuple(name for name, encoding in encodings.items() if encoding is None)


def note_column_kinds(columns: Iterable[Column], diagnostics: FileDiagnostics) -> None:
    """Note which columns are numeric, categorical or dates."""
    for kind_name, kind in (("numeric", Numeric), ("categorical", Categorical), ("date", Date)):
        names = [column.name for column in columns if isinstance(column, kind)]
        if names:
            diagnostics.note(f"{counted(len(names), f'{kind_name} column')} {listed(names)}")
