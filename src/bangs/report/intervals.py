"""Intervals in words."""

from bangs.core.intervals import wilson


def in_percent(share: float, count: int) -> str:
    """The interval in words: `72.1 to 80.3 %`."""
    low, high = wilson(share, count)
    return f"{100 * low:.1f} to {100 * high:.1f}\N{NO-BREAK SPACE}%"
