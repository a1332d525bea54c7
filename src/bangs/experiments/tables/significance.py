"""Significance tests for the difference of two methods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

LEVEL = 0.05  # of the paired tests, after Holm's correction


@dataclass(frozen=True)
class Comparison:
    """The difference of two methods over the same seeds."""

    place: str  # the row or column of the table on which the two are compared, such as a dataset
    first: str
    second: str
    seeds: int
    difference: float  # mean of first − second
    low: float  # 95 % interval of the difference
    high: float
    p: float  # two-sided paired t-test
    corrected: float = 1.0  # p after Holm's correction over all tests of the table
    rerun: float = 0.0  # how far the difference may move if both run again with another summation order

    @property
    def verdict(self) -> Literal["better", "worse", "no difference shown", "not beyond re-runs"]:
        """The result for the first method: by the corrected test, and by the range of re-runs."""
        if self.corrected >= LEVEL:
            return "no difference shown"
        if abs(self.difference) <= self.rerun:
            return "not beyond re-runs"
        return "better" if self.difference > 0 else "worse"


def paired(place: str, first: str, second: str, ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    """A paired t-test of two lists of scores, and the interval of the mean difference."""
    gains = np.asarray(ours) - np.asarray(theirs)
    n, mean = len(gains), float(gains.mean())
    if n < 2:
        return Comparison(place, first, second, n, mean, -np.inf, np.inf, 1.0)
    if gains.std() == 0.0:  # the test would divide by zero
        return Comparison(place, first, second, n, mean, mean, mean, 1.0 if mean == 0.0 else 0.0)
    test = stats.ttest_rel(ours, theirs)
    interval = test.confidence_interval(0.95)
    return Comparison(place, first, second, n, mean, float(interval.low), float(interval.high), float(test.pvalue))


def holm(p: Sequence[float]) -> list[float]:
    """Holm-corrected p-values (Holm 1979): the i-th smallest of m is multiplied by m − i + 1, never decreasing."""
    values = np.array(p, dtype=float)
    order = values.argsort(kind="stable")
    factors = np.arange(len(p), 0, -1)
    values[order] = np.maximum.accumulate(np.minimum(factors * values[order], 1.0))
    return list(map(float, values))


def stars(best: Sequence[float], second: Sequence[float]) -> Literal["", "*", "**"]:
    """The marks of the paper: one-sided Welch t-test that the first mean is higher; * p < 0.10, ** p < 0.05."""
    if len(best) < 2 or len(second) < 2:
        return ""
    spread = np.var(best, ddof=1) + np.var(second, ddof=1)
    if spread == 0.0:
        return "**" if np.mean(best) > np.mean(second) else ""
    p = float(stats.ttest_ind(best, second, equal_var=False, alternative="greater").pvalue)
    return "**" if p < 0.05 else "*" if p < 0.10 else ""
