"""Kinds of columns: what a column holds, learned from its pieces one after the other."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import counted, listed
from bangs.graphs.tables.encoding import Categorical, Numeric
from bangs.graphs.tables.numbers import FORGIVEN, LARGEST, are_codes, is_missing, read_numbers, without_signs
from bangs.graphs.tables.table import Table

LEVELS = 50  # the most categories a column keeps; what is rarer becomes "other"
NAMES = 10  # so many cells, no two alike, name nodes and are no categories
MOST_WORDS = 100_000  # different words of a column that are counted


@dataclass
class ValueCounts:
    """How often every word of a column occurs; gives up beyond 100,000 different ones."""

    words: "Counter[str]" = field(default_factory=Counter)
    too_many: bool = False

    def add(self, words: Any) -> None:
        """One more piece of the column."""
        if self.too_many:
            return
        counts = pc.value_counts(words)
        self.words.update(
            dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
        )
        if len(self.words) > MOST_WORDS:
            self.too_many = True
            self.words.clear()


@dataclass
class ColumnStatistics:
    """The numbers, words and blanks of one column so far; `encoding` draws the conclusion.

    Mean and spread are merged piece by piece (Chan et al. 1979).
    """

    name: str
    file: str
    categorical: bool  # take digits as words
    rows: int = 0
    missing: int = 0
    wrong: int = 0
    with_signs: int = 0  # numbers but for signs such as those of 1,234 and 45 % and $3
    numbers: int = 0
    mean: float = 0.0
    squares: float = 0.0  # Σ (value − mean)²
    low: float = math.inf
    high: float = -math.inf
    whole: bool = True
    codes: bool = False
    uncounted: bool = False  # some pieces held numbers only, whose words were not counted
    notes: list[str] = field(default_factory=list)  # how its numbers are written
    counts: ValueCounts = field(default_factory=ValueCounts)

    def add(self, table: Table) -> None:
        """One more piece of the table."""
        words = table.columns[self.name]
        blank = is_missing(words)
        found = read_numbers(table, self.name, self.notes)
        self.rows += len(words)
        self.missing += int(blank.sum())
        wrong = int(found.wrong.sum())
        self.wrong += wrong
        if wrong:
            self.with_signs += int(np.isfinite(without_signs(words).values).sum())
        self.codes = self.codes or are_codes(words)
        with np.errstate(invalid="ignore"):
            values = found.values[np.abs(found.values) <= LARGEST]
        if len(values):
            total, mean = self.numbers + len(values), float(values.mean())
            self.squares += float(((values - mean) ** 2).sum())
            self.squares += (mean - self.mean) ** 2 * self.numbers * len(values) / total
            self.mean += (mean - self.mean) * len(values) / total
            self.numbers = total
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
            self.whole = self.whole and bool((values == np.floor(values)).all())
        if self.categorical or self.wrong or self.codes:
            self.counts.add(words.filter(pa.array(~blank)) if blank.any() else words)
        else:
            self.uncounted = True

    @property
    def as_words(self) -> bool:
        """Whether the column is taken as categories."""
        present = self.rows - self.missing
        few_numbers = present > 0 and 1 - self.wrong / present <= FORGIVEN
        return self.categorical or few_numbers or (self.wrong == 0 and self.codes)

    def count_again(self, tables: Iterable[Table]) -> None:
        """Count the words of all pieces, where the first ones held numbers and were not counted."""
        if self.as_words and self.uncounted:
            self.counts = ValueCounts()
            for table in tables:
                words = table.columns[self.name]
                self.counts.add(words.filter(pa.array(~is_missing(words))))

    def encoding(self, notes: list[str]) -> Numeric | Categorical | None:
        """How the column becomes features; None where it does not."""
        place = f"{self.file}: column {self.name!r}"
        present = self.rows - self.missing
        if present == 0:
            notes.append(f"{place} is blank throughout; left out")
            return None
        if not self.as_words:
            notes += dict.fromkeys(self.notes)
            return self._numeric(place, notes)
        if not self.categorical and self.wrong == 0:
            notes.append(f"{place} holds digits that begin with 0; taken as categories")
        elif not self.categorical and self.with_signs > FORGIVEN * present:
            notes.append(
                f"{place} holds numbers with signs as in 1,234 or 45 % or $3, which are read as words; write them plain"
            )
        return self._categories(place, notes)

    def _numeric(self, place: str, notes: list[str]) -> Numeric | None:
        scale = math.sqrt(self.squares / self.numbers) if self.numbers else 0.0
        if self.wrong == 0 and self.low >= self.high:
            notes.append(f"{place} has one value throughout; left out")
            return None
        # differences in the last digits are rounding, but not between whole numbers
        if self.wrong == 0 and (scale == 0 or (scale <= 1e-12 * abs(self.mean) and not self.whole)):
            notes.append(f"{place} differs in its last digits only, from {self.low!r} to {self.high!r}; left out")
            return None
        return Numeric(self.name, self.mean, scale or 1.0)

    def _categories(self, place: str, notes: list[str]) -> Categorical | None:
        levels = sorted(self.counts.words, key=lambda word: (-self.counts.words[word], word))
        present = self.rows - self.missing
        if len(levels) == present >= NAMES:
            notes.append(f"{place} has a different word in every cell, which makes no categories; left out")
            return None
        if self.counts.too_many or (len(levels) > LEVELS and 2 * len(levels) > present):
            many = f"more than {MOST_WORDS:,}" if self.counts.too_many else f"{len(levels):,}"
            notes.append(f"{place} has {many} different words in {present:,} cells, too many for categories; left out")
            return None
        if len(levels) < 2:
            notes.append(f"{place} has one value throughout; left out")
            return None
        if self.missing:
            notes.append(f"{self.file}: no category for {counted(self.missing, 'blank')} of column {self.name!r}")
        if len(levels) > LEVELS:
            notes.append(f"{place} has {len(levels):,} categories; the {LEVELS} most frequent are kept, others as one")
        return Categorical(self.name, tuple(sorted(levels[:LEVELS])), other=len(levels) > LEVELS)


def note_kinds(file: str, columns: Iterable[Numeric | Categorical], notes: list[str]) -> None:
    """Say which columns are numbers and which are words."""
    for what, kind in (("numeric", Numeric), ("categorical", Categorical)):
        names = [column.name for column in columns if isinstance(column, kind)]
        if names:
            notes.append(f"{file}: {counted(len(names), f'{what} column')} {listed(names)}")
