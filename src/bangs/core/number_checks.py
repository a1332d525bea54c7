"""Settings that must be numbers, of a certain size; a suite file or a notebook may give anything."""

from numbers import Integral, Real
from typing import Any

from bangs.errors import InvalidInput

_RULES = {"(0, inf)": "be positive", "[0, inf)": "not be negative"}


def check_integer(name: str, *values: Any, least: int | None = None) -> None:
    """Raises where a value is no whole number, or less than `least`; True is none."""
    _check(name, values, Integral, "a whole number")
    for value in values:
        if least is not None and value < least:
            raise InvalidInput(f"{name} must be at least {least}, got {value}")


def check_number(name: str, *values: Any, within: str = "") -> None:
    """Raises where a value is no real number, or not within an interval such as "(0, 1]"; True is none."""
    _check(name, values, Real, "a number")
    if not within:
        return
    low, high = map(float, within[1:-1].split(","))
    for value in values:
        above = low <= value if within[0] == "[" else low < value
        below = value <= high if within[-1] == "]" else value < high
        if not (above and below):
            raise InvalidInput(f"{name} must {_RULES.get(within, f'lie in {within}')}, got {value}")


def _check(name: str, values: tuple[Any, ...], kind: type, word: str) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InvalidInput(f"{name} must be {word}, got {repr(value)[:100]}")
