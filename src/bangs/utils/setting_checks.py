"""Checks of settings: numbers within bounds, and names from a list."""

from collections.abc import Iterable
from math import inf
from numbers import Integral, Real
from typing import Any

from bangs.errors import InvalidInput, UnknownName

_RULES = {"(0, inf)": "be positive", "[0, inf)": "not be negative"}


def check_integer(name: str, value: Any, *, least: int | None = None) -> None:
    """Raises `InvalidInput` if the value is not an integer (bool is not) or is less than `least`."""
    _check_kind(name, value, Integral, "a whole number")
    if least is not None and value < least:
        raise InvalidInput(f"{name} must be at least {least}, got {value}")


def check_number(name: str, value: Any, *, within: str = "") -> None:
    """Raises `InvalidInput` if the value is not a real number (bool is not) or lies outside of `within`: "(0, 1]"."""
    _check_kind(name, value, Real, "a number")
    if not within:
        return
    low, high = map(float, within[1:-1].split(","))
    if abs(value) == inf:
        raise InvalidInput(f"{name} must be finite, got {value}")
    above = low <= value if within[0] == "[" else low < value
    below = value <= high if within[-1] == "]" else value < high
    if not (above and below):
        raise InvalidInput(f"{name} must {_RULES.get(within, f'lie in {within}')}, got {value}")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raises `InvalidInput` if a setting is not one of its choices; NA and arrays, which compare oddly, are not."""
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"{name} must be one of {', '.join(known)}, got '{value}'")


def check_name(kind: str, name: Any, known: Iterable[str]) -> None:
    """Raises `UnknownName`, which suggests the nearest name, if a name is not in a list such as that of the methods."""
    if not isinstance(name, str) or name not in known:
        raise UnknownName(kind, str(name), known)


def _check_kind(name: str, value: Any, kind: type, noun: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise InvalidInput(f"{name} must be {noun}, got {repr(value)[:100]}")
