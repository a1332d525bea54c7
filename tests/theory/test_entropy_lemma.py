"""Lemma B.2: how much the entropy can change when logits move by at most δ against each other."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.theory.definitions import Array, entropy, softmax
from tests.theory.measured import constant

CLASSES = [2, 3, 4, 5, 6, 7, 18]


def extreme(classes: int, delta: float) -> tuple[Array, Array]:
    """Logits at which one class stands against an even rest, and the change of range δ that hurts most. [C] each"""
    share = constant(classes).share
    probs = np.array([share, *[(1 - share) / (classes - 1)] * (classes - 1)])
    change = np.zeros(classes)
    change[0] = delta
    return np.log(probs), change


def change_of_entropy(logits: Array, change: Array) -> float:
    return float(abs(entropy(softmax(logits + change)) - entropy(softmax(logits))))


@pytest.mark.parametrize("classes", [6, 7, 18])
def test_half_of_delta_is_exceeded_from_six_classes_on(classes: int) -> None:
    logits, change = extreme(classes, delta=1e-3)
    assert change_of_entropy(logits, change) > 0.51e-3


@pytest.mark.parametrize("classes", CLASSES)
def test_the_constant_is_reached_by_small_changes(classes: int) -> None:
    logits, change = extreme(classes, delta=1e-4)
    assert change_of_entropy(logits, change) == pytest.approx(constant(classes).value * 1e-4, rel=1e-3)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("delta", [1e-3, 0.3, 2.0, 10.0])
def test_no_change_small_or_large_exceeds_the_constant(classes: int, delta: float) -> None:
    rng = np.random.default_rng(classes)
    for scale in (0.5, 2.0, 6.0):
        logits = scale * rng.standard_normal((500, classes))
        corners = delta * rng.integers(0, 2, (500, classes))  # the range is used in full
        inner = delta * rng.random((500, classes))
        for change in (corners, inner):
            moved = np.abs(entropy(softmax(logits + change)) - entropy(softmax(logits)))
            assert moved.max() <= min(constant(classes).value * delta, np.log(classes)) * (1 + 1e-6)


@pytest.mark.parametrize("classes", [3, 6, 7])
def test_a_search_over_all_distributions_finds_no_steeper_one(classes: int) -> None:
    # the slope of H along changes of range 1 is ½ Σ p |log p + H|, since its gradient sums to zero
    def slope(logits: Array) -> float:
        probs = softmax(logits)
        return float(-0.5 * (probs * np.abs(np.log(probs) + entropy(probs))).sum())

    rng = np.random.default_rng(classes)
    found = [minimize(slope, 2 * rng.standard_normal(classes), method="Nelder-Mead").fun for _ in range(10)]
    steepest = minimize(slope, extreme(classes, 0.0)[0], method="Nelder-Mead").fun
    assert -min(*found, steepest) == pytest.approx(constant(classes).value, rel=1e-4)


def test_a_change_can_be_farther_than_half_its_range_from_its_mean() -> None:
    change = np.array([1.0, 0.0, 0.0])  # the proof has |c_j − c̄| ≤ δ/2
    assert abs(change[0] - change.mean()) == pytest.approx(2 / 3)


def test_the_first_line_of_the_proof_loses_the_old_entropy() -> None:
    logits, change = np.array([2.0, 0.0, -1.0]), np.array([0.1, 0.0, -0.1])
    new = softmax(logits + change)
    printed = -(new * (change - np.log(np.exp(change).sum()))).sum()
    true = float(entropy(new) - entropy(softmax(logits)))
    assert true < 0 < printed
    assert printed > 10 * abs(true)
