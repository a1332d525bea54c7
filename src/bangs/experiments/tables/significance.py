"""Significance: whether one method's lead over another is more than chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from bangs.errors import InvalidInput

LEVEL = 0.05  # of the paired tests, after Holm's correction


@dataclass(frozen=True)
class Comparison:
    """One method less another over the same seeds."""

    place: str  # the dataset, or whatever the two were compared on
    first: str
    second: str
    seeds: int
    difference: float  # mean of first − second
    low: float  # 95 % interval of the difference
    high: float
    p: float  # two-sided paired t-test
    corrected: float = 1.0  # by Holm, over the family it belongs to
    rerun: float = 0.0  # what the difference may move by if both run again with sums in another order

    @property
    def verdict(self) -> Literal["better", "worse", "no difference shown", "not beyond re-runs"]:
        """What the corrected test says of the first, and whether a re-run would."""
        if self.corrected >= LEVEL:
            return "no difference shown"
        if abs(self.difference) <= self.rerun:
            return "not beyond re-runs"
        return "better" if self.difference > 0 else "worse"


def paired(place: str, first: str, second: str, ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    """The paired t-test of two lists of scores, seed by seed, and the interval of the mean difference."""
    if len(ours) != len(theirs) or not len(ours):
        raise InvalidInput(f"paired scores must be of the same seeds, got {len(ours)} and {len(theirs)} of them")
    gains = np.asarray(ours) - np.asarray(theirs)
    n, mean = len(gains), float(gains.mean())
    if n < 2:
        return Comparison(place, first, second, n, mean, -np.inf, np.inf, 1.0)
    if gains.std() == 0.0:  # all seeds gain the same, and the test divides by zero
        return Comparison(place, first, second, n, mean, mean, mean, 1.0 if mean == 0.0 else 0.0)
    test = stats.ttest_rel(ours, theirs)
    interval = test.confidence_interval(0.95)
    return Comparison(place, first, second, n, mean, float(interval.low), float(interval.high), float(test.pvalue))


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for being so many: the i-th smallest of m times m − i + 1, never decreasing (Holm, 1979)."""
    order = sorted(range(len(p)), key=lambda index: p[index])
    corrected, highest = [1.0] * len(p), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - place) * p[index]))
        corrected[index] = highest
    return corrected


def stars(best: Sequence[float], second: Sequence[float]) -> Literal["", "*", "**"]:
    """The paper's marks: one-sided t-test (Welch) that the first mean is higher; * p < 0.10, ** p < 0.05."""
    if len(best) < 2 or len(second) < 2:
        return ""
    spread = np.var(best, ddof=1) + np.var(second, ddof=1)
    if spread == 0.0:
        return "**" if np.mean(best) > np.mean(second) else ""
    p = float(stats.ttest_ind(best, second, equal_var=False, alternative="greater").pvalue)
    return "**" if p < 0.05 else "*" if p < 0.10 else ""
