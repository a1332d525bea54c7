"""The published numbers of a suite file: one entry for every cell, or "none"."""

from collections.abc import Sequence
from typing import Any

from bangs.errors import InvalidInput
from bangs.experiments.suites.content import Faults
from bangs.experiments.suites.suite import Cell, Kind, Published
from bangs.runs.history import STAGES


class PublishedReader(Faults):
    """Reads what a file of a kind says was published."""

    def __init__(self, source: str, kind: Kind):
        super().__init__(source)
        self.kind = kind

    def numbers(self, content: dict[str, Any], cells: Sequence[Cell]) -> dict[tuple[str, str], Published]:
        """One entry for every cell: numbers, or "none" where the source has none, for a cell or a whole row."""
        wanted: dict[str, set[str]] = {}
        for cell in cells:
            wanted.setdefault(cell.row, set()).add(cell.column)
        for row in content:
            if row not in wanted:
                raise self.unknown("row", row, wanted, f"published.{row}")
        found = {}
        for row, columns in wanted.items():
            if row not in content:
                raise self._missing(f"published.{row}")
            for column, entry in self._row(content[row], row, columns).items():
                if entry != "none":
                    place = ".".join(["published", row, *([column] if column else [])])
                    found[row, column] = self._entry(entry, place)
        return found

    def _row(self, entry: Any, row: str, columns: set[str]) -> dict[str, Any]:
        """What a row gives for its columns; nothing where it is "none" as a whole."""
        if entry == "none":
            return {}
        if columns == {""}:
            return {"": entry}
        if not isinstance(entry, dict):
            raise self.wrong(f"published.{row}", f'must be a table or "none", got {entry!r}')
        for column in entry:
            if column not in columns:
                raise self.unknown("column", column, columns, f"published.{row}.{column}")
        for column in columns:
            if column not in entry:
                raise self._missing(f"published.{row}.{column}")
        return entry

    def _entry(self, value: Any, place: str) -> Published:
        counts = {"stages": (len(STAGES),), "time": (1,)}.get(self.kind, (1, 2))
        values = value if isinstance(value, list) else [value]
        stars = values[-1] if self.kind == "table" and values and values[-1] in ("*", "**") else ""
        numbers = values[:-1] if stars else values
        if len(numbers) not in counts or any(
            type(number) not in (int, float) or not abs(number) < 1e9 for number in numbers
        ):
            forms = {"stages": f"one number for each of {', '.join(STAGES)}", "time": "seconds"}
            raise self.wrong(place, f'must be {forms.get(self.kind, "[mean, std]")} or "none", got {value!r}')
        return Published(tuple(float(number) for number in numbers), stars)

    def _missing(self, place: str) -> InvalidInput:
        return self.wrong(place, 'is missing; give the published number, or "none" where there is none')
