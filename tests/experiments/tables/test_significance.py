"""Tests of a lead, held to scipy and to answers known on paper."""

import numpy as np
import pytest
from scipy import stats

from bangs.experiments.tables.significance import holm, paired, stars


def test_holm_on_paper() -> None:
    # sorted 0.01, 0.02, 0.04: times 3, 2 and 1, never decreasing
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_paired_test_is_scipys() -> None:
    generator = np.random.default_rng(0)
    ours, theirs = generator.normal(84, 1, 10), generator.normal(83.5, 1, 10)
    comparison = paired("cora", "bangs", "cpl", list(ours), list(theirs))
    known = stats.ttest_rel(ours, theirs)
    assert comparison.p == pytest.approx(known.pvalue)
    assert (comparison.low, comparison.high) == pytest.approx(tuple(known.confidence_interval(0.95)))
    assert comparison.difference == pytest.approx(float((ours - theirs).mean()))


def test_a_lead_is_a_verdict_only_after_correction() -> None:
    same = paired("cora", "bangs", "raw", [80.0, 81.0], [80.0, 81.0])
    assert (same.p, same.verdict) == (1.0, "no difference shown")
    always = paired("cora", "bangs", "raw", [81.0, 82.0], [80.0, 81.0])
    assert always.p == 0.0
    assert always.verdict == "no difference shown"  # not corrected yet
    assert paired("cora", "bangs", "raw", [81.0], [80.0]).p == 1.0  # one seed tells nothing


def test_the_papers_marks() -> None:
    second = [80.0, 80.2, 79.8, 80.1, 79.9]
    assert stars([value + 1 for value in second], second) == "**"
    assert stars([value + 0.15 for value in second], second) == "*"
    assert stars([value + 0.05 for value in second], second) == ""
    assert stars([80.0], [79.0]) == ""
    assert stars([80.0, 80.0], [79.0, 79.0]) == "**"
