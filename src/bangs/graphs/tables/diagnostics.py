"""Diagnostics: all problems with a person's tables, collected first and reported at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bangs.errors import BangsError
from bangs.utils.text import counted as counted

MAX_SHOWN = 20


@dataclass(frozen=True)
class Diagnostic:
    """One problem: where it is, and what to do about it."""

    file: str
    row: int | None  # as a spreadsheet counts: the header is row 1; None where it is not one row
    message: str
    remedy: str
    kind: str = ""  # problems of one kind in one file are reported together

    def __str__(self) -> str:
        location = self.file if self.row is None else f"{self.file}, row {self.row:,}"
        return f"{location}: {self.message}; {self.remedy}"


class BadTables(BangsError, ValueError):
    """The tables cannot be read as a graph; `diagnostics` has the problems, the first 20 of each kind in a file."""

    def __init__(self, where: str, diagnostics: Sequence[Diagnostic], total: int, text: str):
        super().__init__(text)
        self.where = where
        self.diagnostics = list(diagnostics)
        self.total = total


@dataclass
class Diagnostics:
    """The list of problems, which grows while a folder is read, and of what a person should know besides."""

    where: str
    what: str = "a graph"
    notes: list[str] = field(default_factory=list)  # what was guessed, made, merged or left out, in sentences
    _groups: dict[tuple[str, str], list[Diagnostic]] = field(default_factory=dict)
    _totals: dict[tuple[str, str], int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._groups)

    def of(self, file: str) -> "FileDiagnostics":
        """Where the problems of one file are reported."""
        return FileDiagnostics(file, self)

    def add(self, problems: Sequence[Diagnostic], total: int) -> None:
        """Problems of one kind in one file, perhaps only the first ones of a larger `total`."""
        key = (problems[0].file, problems[0].kind)
        group = self._groups.setdefault(key, [])
        group.extend(problems[: max(MAX_SHOWN - len(group), 0)])
        self._totals[key] = self._totals.get(key, 0) + total

    def raise_any(self) -> None:
        """Raises `BadTables` if there is a problem."""
        if not self._groups:
            return
        total = sum(self._totals.values())
        problems = [problem for group in self._groups.values() for problem in group]
        raise BadTables(self.where, problems, total, self._text(total))

    def _text(self, total: int) -> str:
        lines = [f"{self.where} cannot be read as {self.what}: {counted(total, 'problem')}"]
        for (file, kind), group in self._groups.items():
            lines += ["", file]
            lines += [
                f"  {problem.message}" if problem.row is None else f"  row {problem.row:,}: {problem.message}"
                for problem in group
            ]
            hidden = self._totals[file, kind] - len(group)
            if hidden > 0:
                lines.append(f"  … and {hidden:,} more")
            lines += [f"  → {remedy}" for remedy in dict.fromkeys(problem.remedy for problem in group)]
        return "\n".join(lines)


@dataclass(frozen=True)
class FileDiagnostics:
    """The part of the list that is about one file."""

    file: str
    all_files: Diagnostics

    def __bool__(self) -> bool:
        return any(file == self.file for file, _ in self.all_files._groups)

    def note(self, sentence: str) -> None:
        """One more sentence that is no problem."""
        self.all_files.notes.append(f"{self.file}: {sentence}")

    def add(self, kind: str, message: str, remedy: str, row: int | None = None) -> None:
        """One more problem."""
        self.add_many(kind, [(row, message)], remedy)

    def add_many(
        self, kind: str, messages: Sequence[tuple[int | None, str]], remedy: str, total: int | None = None
    ) -> None:
        """Problems of one kind as (row, message); these may be only the first ones of a larger `total`."""
        problems = [Diagnostic(self.file, row, message, remedy, kind) for row, message in messages[:MAX_SHOWN]]
        self.all_files.add(problems, len(messages) if total is None else total)

    def add_rows(
        self, kind: str, rows: Sequence[int] | npt.NDArray[np.int64], message: Callable[[int], str], remedy: str
    ) -> None:
        """One problem per row number, if there are any; `message(i)` is called for the first few only."""
        if len(rows):
            self.add_many(kind, [(int(row), message(i)) for i, row in enumerate(rows[:MAX_SHOWN])], remedy, len(rows))


def quoted(value: object, limit: int = 60) -> str:
    """A value from a file as it may stand in a sentence: short, in quotes, control characters escaped."""
    text = str(value)
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def listed(values: Sequence[object], limit: int = 8) -> str:
    """The first few values, quoted, and how many more there are."""
    text = ", ".join(quoted(value, 40) for value in values[:limit])
    return text if len(values) <= limit else f"{text} and {len(values) - limit:,} more"
