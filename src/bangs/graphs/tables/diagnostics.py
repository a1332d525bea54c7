"""Collect all problems with a user's tables, and report them at once."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bangs.errors import BangsError
from bangs.utils.text import counted as counted

MAX_SHOWN = 20  # problems of one kind in one file


@dataclass(frozen=True)
class Diagnostic:
    """One problem: its file and row, and its remedy."""

    file: str
    row: int | None  # as in a spreadsheet: the header is row 1; None if the problem is not in one row
    message: str
    remedy: str
    kind: str = ""  # problems of one kind in one file are reported together

    def __str__(self) -> str:
        location = self.file if self.row is None else f"{self.file}, row {self.row:,}"
        return f"{location}: {self.message}; {self.remedy}"


class BadTables(BangsError, ValueError):
    """The tables cannot be read as a graph; `diagnostics` has the problems, the first 20 of each kind in a file."""

    def __init__(self, diagnostics: Sequence[Diagnostic], total: int, text: str):
        super().__init__(text)
        self.diagnostics = list(diagnostics)
        self.total = total


@dataclass
class Diagnostics:
    """The problems found so far, and notes for the user."""

    source: str
    kind: str = "a graph"
    notes: list[str] = field(default_factory=list)  # sentences about what was guessed, made, merged or left out
    shown: dict[tuple[str, str], list[Diagnostic]] = field(default_factory=dict)  # (file, kind) -> the first problems
    totals: Counter[tuple[str, str]] = field(default_factory=Counter)  # (file, kind) -> the number of problems

    def __bool__(self) -> bool:
        return bool(self.shown)

    def of(self, file: str) -> "FileDiagnostics":
        """The diagnostics of one file."""
        return FileDiagnostics(file, self)

    def raise_any(self) -> None:
        """Raises `BadTables` if there is a problem."""
        if self:
            raise self.error()

    def error(self) -> BadTables:
        """The problems found so far as an error."""
        total = self.totals.total()
        lines = [f"{self.source} cannot be read as {self.kind}: {counted(total, 'problem')}"]
        for (file, kind), group in self.shown.items():
            lines += ["", file]
            lines += [
                f"  {problem.message}" if problem.row is None else f"  row {problem.row:,}: {problem.message}"
                for problem in group
            ]
            hidden = self.totals[file, kind] - len(group)
            if hidden > 0:
                lines.append(f"  … and {hidden:,} more")
            lines += [f"  → {remedy}" for remedy in dict.fromkeys(problem.remedy for problem in group)]
        return BadTables([problem for group in self.shown.values() for problem in group], total, "\n".join(lines))


@dataclass(frozen=True)
class FileDiagnostics:
    """The diagnostics of one file."""

    file: str
    all_files: Diagnostics

    def __bool__(self) -> bool:
        return any(file == self.file for file, _ in self.all_files.shown)

    def note(self, sentence: str) -> None:
        """Add a sentence for the user that is not a problem."""
        self.all_files.notes.append(f"{self.file}: {sentence}")

    def add(self, kind: str, message: str, remedy: str, row: int | None = None) -> None:
        """Add one problem."""
        self.add_rows(kind, [row], lambda _: message, remedy)

    def add_rows(
        self,
        kind: str,
        rows: Sequence[int | None] | npt.NDArray[np.int64],
        message: Callable[[int], str],
        remedy: str,
        total: int | None = None,
    ) -> None:
        """Add one problem per row number, if any; `message(i)` is called for the first few only.

        The rows may be the first ones of a larger `total`.
        """
        if not len(rows):
            return
        group = self.all_files.shown.setdefault((self.file, kind), [])
        for i, row in enumerate(rows[: MAX_SHOWN - len(group)]):
            group.append(Diagnostic(self.file, None if row is None else int(row), message(i), remedy, kind))
        self.all_files.totals[self.file, kind] += len(rows) if total is None else total


def quoted(value: object, limit: int = 60) -> str:
    """A value from a file for use in a sentence: short, in quotes, control characters escaped."""
    text = str(value)
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def listed(values: Sequence[object], limit: int = 8) -> str:
    """The first few values, quoted, and how many more there are."""
    text = ", ".join(quoted(value, 40) for value in values[:limit])
    return text if len(values) <= limit else f"{text} and {len(values) - limit:,} more"
