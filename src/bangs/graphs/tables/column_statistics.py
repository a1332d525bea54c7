"""Kinds of columns: what a column holds, learned from its pieces one after the other."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.dates import FORMATS, YEAR, any_dates, read_dates
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed
from bangs.graphs.tables.feature_encoding import Categorical, Column, Date, Numeric
from bangs.graphs.tables.numbers import MAJORITY, MAX_MAGNITUDE, are_codes, is_missing, read_numbers, without_signs
from bangs.graphs.tables.table import Table

MAX_LEVELS = 50  # the most categories a column keeps; what is rarer becomes "other"
MAX_COUNT = 20  # whole numbers from 0 up to it are counts, which are not standardised
MIN_NAMES = 10  # so many cells, no two alike, name nodes and are no categories
MAX_DISTINCT = 100_000  # different words of a column that are counted


@dataclass
class ValueCounts:
    """How often every word of a column occurs; gives up beyond 100,000 different ones."""

    counter: "Counter[str]" = field(default_factory=Counter)
    too_many: bool = False

    def add(self, cells: Any) -> None:
        """One more piece of the column."""
        if self.too_many:
            return
        values, numbers = pc.value_counts(cells).flatten()
        self.counter.update(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))
        if len(self.counter) > MAX_DISTINCT:
            self.too_many = True
            self.counter.clear()


@dataclass
class Moments:
    """Number, mean, spread and range of some numbers, merged piece by piece (Chan et al. 1979)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # Σ (value − mean)²
    low: float = math.inf
    high: float = -math.inf
    integral: bool = True

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """One more piece; NaN, infinity and numbers beyond ±1e30 do not count."""
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

    @property
    def scale(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0


@dataclass
class ColumnStatistics:
    """The numbers, dates, words and blanks of one column so far; `encoding` draws the conclusion."""

    name: str
    diagnostics: FileDiagnostics
    categorical: bool  # take digits as words
    scaling: str = "auto"  # of numbers: "standard", "none", or "auto" = standard but for 0/1 and small counts
    rows: int = 0
    missing: int = 0
    wrong: int = 0
    with_signs: int = 0  # numbers but for signs such as those of 1,234 and 45 % and $3
    numbers: Moments = field(default_factory=Moments)
    dates: dict[str, Moments] = field(default_factory=lambda: {form: Moments() for form in FORMATS})
    codes: bool = False
    uncounted: bool = False  # some pieces held numbers only, whose words were not counted
    notes: list[str] = field(default_factory=list)  # how its numbers are written
    counts: ValueCounts = field(default_factory=ValueCounts)

    def add(self, table: Table) -> None:
        """One more piece of the table."""
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
        self.codes = self.codes or are_codes(cells)
        self.numbers.add(numbers.values)
        if self.categorical or self.wrong or self.codes:
            self.counts.add(cells.filter(pa.array(~blank)) if blank.any() else cells)
        else:
            self.uncounted = True

    @property
    def as_words(self) -> bool:
        """Whether the column is taken as categories."""
        present = self.rows - self.missing
        few_numbers = present > 0 and 1 - self.wrong / present <= MAJORITY
        return self.categorical or few_numbers or (self.wrong == 0 and self.codes)

    def count_again(self, tables: Iterable[Table]) -> None:
        """Count the words of all pieces, where the first ones held numbers and were not counted."""
        if self.as_words and self.uncounted:
            self.counts = ValueCounts()
            for table in tables:
                cells = table.columns[self.name]
                self.counts.add(cells.filter(pa.array(~is_missing(cells))))

    def encoding(self) -> Column | None:
        """How the column becomes features; None where it does not."""
        column = f"column {self.name!r}"
        present = self.rows - self.missing
        if present == 0:
            self.diagnostics.note(f"{column} is blank throughout; left out")
            return None
        if not self.as_words:
            self.diagnostics.all_files.notes += dict.fromkeys(self.notes)
            return self._numeric(column)
        forms = [] if self.categorical else self._date_forms(present)
        if len(forms) == 1:
            return self._date(forms[0], column)
        if forms:
            example = next(iter(self.counts.counter), "")
            self.diagnostics.note(
                f"{column} holds dates such as {example!r}, where day and month cannot be told apart; taken as "
                "words. Write them as year-month-day"
            )
        elif not self.categorical and self.wrong == 0:
            self.diagnostics.note(f"{column} holds digits that begin with 0; taken as categories")
        elif not self.categorical and self.with_signs > MAJORITY * present:
            self.diagnostics.note(
                f"{column} holds numbers with signs as in 1,234 or 45 % or $3, which are read as words; "
                "write them plain"
            )
        return self._categories(column)

    def _date_forms(self, present: int) -> list[str]:
        """The formats in which most cells are dates, if any; two where day and month cannot be told apart."""
        most = max(days.count for days in self.dates.values())
        return [form for form, days in self.dates.items() if days.count == most] if most > MAJORITY * present else []

    def _date(self, form: str, column: str) -> Date | None:
        days = self.dates[form]
        if days.low >= days.high and days.count == self.rows - self.missing:
            self.diagnostics.note(f"{column} has one value throughout; left out")
            return None
        yearly = days.high - days.low > YEAR
        also = ", sine and cosine of the time of year" if yearly else ""
        self.diagnostics.note(f"{column} holds dates ({form}), which become days since 1970{also}")
        return Date(self.name, days.mean, days.scale or 1.0, form, yearly)

    def _numeric(self, column: str) -> Numeric | None:
        numbers = self.numbers
        if self.wrong == 0 and numbers.low >= numbers.high:
            self.diagnostics.note(f"{column} has one value throughout; left out")
            return None
        # differences in the last digits are rounding, but not between whole numbers
        if self.wrong == 0 and (
            numbers.scale == 0 or (numbers.scale <= 1e-12 * abs(numbers.mean) and not numbers.integral)
        ):
            self.diagnostics.note(
                f"{column} differs in its last digits only, from {numbers.low!r} to {numbers.high!r}; left out"
            )
            return None
        small = numbers.integral and numbers.low >= 0 and numbers.high <= MAX_COUNT
        if self.scaling == "none" or (self.scaling == "auto" and small):
            return Numeric(self.name, numbers.mean, 1.0, centred=False)
        return Numeric(self.name, numbers.mean, numbers.scale or 1.0)

    def _categories(self, column: str) -> Categorical | None:
        levels = sorted(self.counts.counter, key=lambda level: (-self.counts.counter[level], level))
        present = self.rows - self.missing
        if len(levels) == present >= MIN_NAMES:
            self.diagnostics.note(f"{column} has a different word in every cell, which makes no categories; left out")
            return None
        if self.counts.too_many or (len(levels) > MAX_LEVELS and 2 * len(levels) > present):
            count = f"more than {MAX_DISTINCT:,}" if self.counts.too_many else f"{len(levels):,}"
            self.diagnostics.note(
                f"{column} has {count} different words in {present:,} cells, too many for categories; left out"
            )
            return None
        if len(levels) < 2:
            self.diagnostics.note(f"{column} has one value throughout; left out")
            return None
        if self.missing:
            self.diagnostics.note(f"no category for {counted(self.missing, 'blank')} of column {self.name!r}")
        if len(levels) > MAX_LEVELS:
            self.diagnostics.note(
                f"{column} has {len(levels):,} categories; the {MAX_LEVELS} most frequent are kept, others as one"
            )
        return Categorical(self.name, tuple(sorted(levels[:MAX_LEVELS])), other=len(levels) > MAX_LEVELS)


def decided(statistics: Iterable[ColumnStatistics]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """How columns become features, and the names of those that do not."""
    encodings = {column.name: column.encoding() for column in statistics}
    used = tuple(encoding for encoding in encodings.values() if encoding is not None)
    return used, tuple(name for name, encoding in encodings.items() if encoding is None)


def note_kinds(columns: Iterable[Column], diagnostics: FileDiagnostics) -> None:
    """Say which columns are numbers, which are words and which are dates."""
    for kind_name, kind in (("numeric", Numeric), ("categorical", Categorical), ("date", Date)):
        names = [column.name for column in columns if isinstance(column, kind)]
        if names:
            diagnostics.note(f"{counted(len(names), f'{kind_name} column')} {listed(names)}")
