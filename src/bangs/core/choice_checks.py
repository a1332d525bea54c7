"""Checks of settings that must be one of a list of names."""

from collections.abc import Iterable
from typing import Any

from bangs.errors import InvalidInput, UnknownName


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raises `InvalidInput` if a setting is not one of its choices; NA and arrays, which compare oddly, are not."""
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"{name} must be one of {', '.join(known)}, got '{value}'")


def check_name(kind: str, name: Any, known: Iterable[str]) -> None:
    """Raises `UnknownName`, which suggests the nearest name, if a name is not in a list such as that of the methods."""
    if not isinstance(name, str) or name not in known:
        raise UnknownName(kind, str(name), known)
