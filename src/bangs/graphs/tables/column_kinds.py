"""Counting: what a column is, learned from its pieces one after the other."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import counted
from bangs.graphs.tables.encoding import Categorical, Numeric
from bangs.graphs.tables.features import LEVELS, NAMES, rank
from bangs.graphs.tables.numbers import FORGIVEN, are_codes, is_missing, read_numbers
from bangs.graphs.tables.table import Table

MOST_WORDS = 100_000  # different words of a column that are counted


@dataclass
class Tally:
    """How often every word of a column was seen; gives up beyond 100,000 different ones."""

    words: "Counter[str]" = field(default_factory=Counter)
    many: bool = False

    def add(self, words: Any) -> None:
        """One more piece of the column."""
        if self.many:
            return
        counts = pc.value_counts(words)
        self.words.update(
            dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
        )
        if len(self.words) > MOST_WORDS:
            self.many = True
            self.words.clear()


@dataclass
class ColumnCount:
    """The numbers, words and blanks of one column so far; `encoding` draws the conclusion.

    The rules are those of `features.Fitting`. Mean and spread are merged piece by piece (Chan et al. 1979).
    """

    name: str
    file: str
    categorical: bool
    fill: Literal["mean"] | None
    rows: int = 0
    missing: int = 0
    wrong: int = 0
    numbers: int = 0
    mean: float = 0.0
    squares: float = 0.0  # Σ (value − mean)²
    codes: bool = False
    told: list[str] = field(default_factory=list)  # how its numbers are written
    tally: Tally = field(default_factory=Tally)

    def add(self, table: Table) -> None:
        """One more piece of the table."""
        words = table.columns[self.name]
        blank = is_missing(words)
        found = read_numbers(table, self.name, self.told)
        self.rows += len(words)
        self.missing += int(blank.sum())
        self.wrong += int(found.wrong.sum())
        self.codes = self.codes or are_codes(words)
        values = found.values[np.isfinite(found.values)]
        if len(values):
            total = self.numbers + len(values)
            mean = float(values.mean())
            self.squares += float(((values - mean) ** 2).sum())
            self.squares += (mean - self.mean) ** 2 * self.numbers * len(values) / total
            self.mean += (mean - self.mean) * len(values) / total
            self.numbers = total
        self.tally.add(words.filter(pa.array(~blank)) if blank.any() else words)

    @property
    def as_words(self) -> bool:
        """Whether the column is taken as categories."""
        present = self.rows - self.missing
        mostly = present > 0 and 1 - self.wrong / present <= FORGIVEN
        return self.categorical or mostly or (self.wrong == 0 and self.codes)

    def encoding(self, notes: list[str]) -> Numeric | Categorical | None:
        """How the column becomes features; None where it does not."""
        place = f"{self.file}: column {self.name!r}"
        if self.missing == self.rows:
            notes.append(f"{place} is blank throughout; left out")
            return None
        if self.as_words:
            return self._categories(place, notes)
        scale = math.sqrt(self.squares / self.numbers) if self.numbers else 0.0
        if scale <= 1e-12 * max(abs(self.mean), 1e-12):
            notes.append(f"{place} has one value throughout; left out")
            return None
        notes += dict.fromkeys(self.told)
        if self.missing and self.fill is not None:
            notes.append(f"{place}: {counted(self.missing, 'blank')} filled with its mean")
        return Numeric(self.name, self.mean, scale)

    def _categories(self, place: str, notes: list[str]) -> Categorical | None:
        levels = sorted(((count, word) for word, count in self.tally.words.items()), key=rank)
        present = self.rows - self.missing
        if len(levels) == present >= NAMES:
            notes.append(f"{place} has another word in every cell, so no categories; left out")
            return None
        if self.tally.many or (len(levels) > LEVELS and 2 * len(levels) > present):
            notes.append(f"{place} has too many different words to be categories; left out")
            return None
        if len(levels) < 2:
            notes.append(f"{place} has one value throughout; left out")
            return None
        if self.missing:
            notes.append(f"{place}: no category for {counted(self.missing, 'blank')}")
        if len(levels) > LEVELS:
            notes.append(f"{place} has {len(levels):,} categories; the {LEVELS} most frequent are kept, others as one")
        return Categorical(self.name, tuple(sorted(word for _, word in levels[:LEVELS])), other=len(levels) > LEVELS)
