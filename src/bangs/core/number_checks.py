"""Checks of settings that must be numbers within bounds."""

from math import inf
from numbers import Integral, Real
from typing import Any

from bangs.errors import InvalidInput

_RULES = {"(0, inf)": "be positive", "[0, inf)": "not be negative"}


def check_integer(name: str, *values: Any, least: int | None = None) -> None:
    """Raises `InvalidInput` if a value is not an integer (bool is not one) or is less than `least`."""
    _check(name, values, Integral, "a whole number")
    for value in values:
        if least is not None and value < least:
            raise InvalidInput(f"{name} must be at least {least}, got {value}")


def check_number(name: str, *values: Any, within: str = "") -> None:
    """Raises `InvalidInput` if a value is not a real number (bool is not one) or lies outside of `within`: "(0, 1]"."""
    _check(name, values, Real, "a number")
    if not within:
        return
    low, high = map(float, within[1:-1].split(","))
    for value in values:
        if abs(value) == inf:
            raise InvalidInput(f"{name} must be finite, got {value}")
        above = low <= value if within[0] == "[" else low < value
        below = value <= high if within[-1] == "]" else value < high
        if not (above and below):
            raise InvalidInput(f"{name} must {_RULES.get(within, f'lie in {within}')}, got {value}")


def _check(name: str, values: tuple[Any, ...], kind: type, noun: str) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InvalidInput(f"{name} must be {noun}, got {repr(value)[:100]}")
