"""Results without their seconds, which no two runs share."""

from typing import Any


def timeless(told: Any) -> Any:
    """The same facts without what a clock said, however deep it stands."""
    if isinstance(told, dict):
        return {key: timeless(own) for key, own in told.items() if key != "seconds"}
    return [timeless(own) for own in told] if isinstance(told, list | tuple) else told
