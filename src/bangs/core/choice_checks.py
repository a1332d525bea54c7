"""Settings that must be one of a few words; a suite file or a notebook may give anything."""

from collections.abc import Iterable
from typing import Any

from bangs.errors import InvalidInput, UnknownName


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raises where a value is none of the words a setting may be; NA and arrays, which compare oddly, are none."""
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"{name} must be one of {', '.join(known)}, got '{value}'")


def check_name(kind: str, name: Any, known: Iterable[str]) -> None:
    """Raises where a name is not in a list that may be long, such as that of the methods; names the nearest."""
    if not isinstance(name, str) or name not in known:
        raise UnknownName(kind, str(name), known)
