"""Results without their seconds, which no two runs share."""

from typing import Any


def without_seconds(value: Any) -> Any:
    """The value without its keys `seconds`, at every depth."""
    if isinstance(value, dict):
        return {key: without_seconds(own) for key, own in value.items() if key != "seconds"}
    return [without_seconds(own) for own in value] if isinstance(value, list | tuple) else value
