"""The published numbers of a suite file: one entry for every cell, or "none"."""

from collections.abc import Collection, Sequence
from typing import Any

from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.suites.suite import Cell, Kind, Published
from bangs.runs.history import STAGES


def published_numbers(content: dict[str, Any], kind: Kind, cells: Sequence[Cell]) -> dict[tuple[str, str], Published]:
    """One entry for every cell: numbers, or "none" where the source has none, for a cell or a whole row."""
    wanted: dict[str, set[str]] = {}
    for cell in cells:
        wanted.setdefault(cell.row, set()).add(cell.column)
    _check_keys(content, wanted, "row", "published")
    found = {}
    for row, columns in wanted.items():
        place, entry = f"published.{row}", content[row]
        if entry == "none":
            continue
        if columns == {""}:
            found[row, ""] = _entry(entry, kind, place)
            continue
        if not isinstance(entry, dict):
            raise InvalidInput(f'{place} must be a table or "none", got {entry!r}')
        _check_keys(entry, columns, "column", place)
        for column, own in entry.items():
            if own != "none":
                found[row, column] = _entry(own, kind, f"{place}.{column}")
    return found


def _check_keys(content: dict[str, Any], wanted: Collection[str], kind: str, place: str) -> None:
    """Raise where a table has another key than those wanted, or lacks one."""
    for key in content:
        if key not in wanted:
            raise InvalidInput(f"{place}.{key}: {UnknownName(kind, key, wanted)}")
    for key in wanted:
        if key not in content:
            raise InvalidInput(f'{place}.{key} is missing; give the published number, or "none" where there is none')


def _entry(value: Any, kind: Kind, place: str) -> Published:
    counts = {"stages": (len(STAGES),), "time": (1,)}.get(kind, (1, 2))
    values = value if isinstance(value, list) else [value]
    stars = values[-1] if kind == "table" and values and values[-1] in ("*", "**") else ""
    numbers = values[:-1] if stars else values
    if len(numbers) not in counts or any(
        type(number) not in (int, float) or not abs(number) < 1e9 for number in numbers
    ):
        forms = {"stages": f"one number for each of {', '.join(STAGES)}", "time": "seconds"}
        raise InvalidInput(f'{place} must be {forms.get(kind, "[mean, std]")} or "none", got {value!r}')
    return Published(tuple(float(number) for number in numbers), stars)
