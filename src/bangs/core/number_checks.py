"""Settings that must be numbers; a suite file or a notebook may give anything."""

from numbers import Integral, Real
from typing import Any

from bangs.errors import InvalidInput


def check_whole(name: str, *values: Any) -> None:
    """Raises where a value is no whole number; True is none."""
    _check(name, values, Integral, "a whole number")


def check_number(name: str, *values: Any) -> None:
    """Raises where a value is no real number; True is none."""
    _check(name, values, Real, "a number")


def _check(name: str, values: tuple[Any, ...], kind: type, word: str) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InvalidInput(f"{name} must be {word}, got {repr(value)[:100]}")
