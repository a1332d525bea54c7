"""The Wilson confidence interval of a share that was measured on few nodes."""

from math import sqrt

Z = 1.96  # of the 95 % interval


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share p measured on n = `count` nodes, in [0, 1].

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n) with z = 1.96. Wilson 1927. Without nodes it is [0, 1].
    """
    if count < 1:
        return 0.0, 1.0
    scale, middle = 1 + Z**2 / count, share + Z**2 / (2 * count)
    margin = Z * sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    return max(0.0, (middle - margin) / scale), min(1.0, (middle + margin) / scale)


def in_percent(share: float, count: int) -> str:
    """The interval as text: `72.1 to 80.3 %`."""
    low, high = wilson(share, count)
    return f"{100 * low:.1f} to {100 * high:.1f}\N{NO-BREAK SPACE}%"
