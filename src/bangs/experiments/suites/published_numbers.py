"""Read the published numbers of a suite file: one entry per cell, or "none"."""

from collections.abc import Collection, Sequence
from typing import Any

from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.suites.suite import Cell, Kind, Published
from bangs.runs.history_rows import STAGES


def published_numbers(content: dict[str, Any], kind: Kind, cells: Sequence[Cell]) -> dict[tuple[str, str], Published]:
    """The published numbers by (row, column); the file says "none" for a cell or a row without a number."""
    wanted: dict[str, set[str]] = {}
    for cell in cells:
        wanted.setdefault(cell.row, set()).add(cell.column)
    _check_keys(content, wanted, "row", "published")
    published = {}
    for row, columns in wanted.items():
        key, entry = f"published.{row}", content[row]
        if entry == "none":
            continue
        if columns == {""}:
            published[row, ""] = _entry(entry, kind, key)
            continue
        if not isinstance(entry, dict):
            raise InvalidInput(f'{key} must be a table or "none", got {entry!r}')
        _check_keys(entry, columns, "column", key)
        for column, value in entry.items():
            if value != "none":
                published[row, column] = _entry(value, kind, f"{key}.{column}")
    return published


def _check_keys(content: dict[str, Any], wanted: Collection[str], kind: str, table: str) -> None:
    """Raise if a table has an unknown key or a missing one."""
    for key in content:
        if key not in wanted:
            raise InvalidInput(f"{table}.{key}: {UnknownName(kind, key, wanted)}")
    for key in wanted:
        if key not in content:
            raise InvalidInput(f'{table}.{key} is missing; give the published number, or "none" where there is none')


def _entry(value: Any, kind: Kind, key: str) -> Published:
    counts = {"stages": (len(STAGES),), "time": (1,)}.get(kind, (1, 2))
    values = value if isinstance(value, list) else [value]
    stars = values[-1] if kind == "table" and values and values[-1] in ("*", "**") else ""
    numbers = values[:-1] if stars else values
    if len(numbers) not in counts or any(
        type(number) not in (int, float) or not abs(number) < 1e9 for number in numbers
    ):
        forms = {"stages": f"one number for each of {', '.join(STAGES)}", "time": "seconds"}
        raise InvalidInput(f'{key} must be {forms.get(kind, "[mean, std]")} or "none", got {value!r}')
    return Published(tuple(float(number) for number in numbers), stars)
