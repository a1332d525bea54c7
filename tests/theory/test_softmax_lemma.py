"""Lemma B.1: how probabilities change with logits."""

import numpy as np
import pytest

from tests.theory.definitions import Array, softmax


def case(seed: int, classes: int = 5) -> tuple[Array, Array]:
    """Logits [C] and their changes c [C]."""
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal(classes), rng.standard_normal(classes)


@pytest.mark.parametrize("seed", range(10))
def test_probabilities_are_reweighted_and_normalised_by_themselves(seed: int) -> None:
    logits, change = case(seed)
    old = softmax(logits)
    np.testing.assert_allclose(softmax(logits + change), np.exp(change) * old / (np.exp(change) * old).sum())


@pytest.mark.parametrize("seed", range(10))
def test_the_printed_form_is_no_distribution(seed: int) -> None:
    logits, change = case(seed)
    printed = np.exp(change) / np.exp(change).sum() * softmax(logits)
    assert printed.sum() < 0.9


def test_where_nothing_changes_the_printed_form_divides_by_the_number_of_classes() -> None:
    old = softmax(case(0)[0])
    printed = np.exp(np.zeros(5)) / np.exp(np.zeros(5)).sum() * old
    np.testing.assert_allclose(printed, old / 5)


def test_a_change_equal_for_all_classes_is_none() -> None:
    logits, _ = case(1)
    np.testing.assert_allclose(softmax(logits + 3.0), softmax(logits))


def test_the_softmax_as_printed_before_it_is_uniform_for_any_logits() -> None:
    # its denominator sums e^{x_d} over c, with d fixed
    logits, _ = case(2)
    printed = np.array([np.exp(x) / sum(np.exp(x) for _ in logits) for x in logits])
    np.testing.assert_allclose(printed, 1 / len(logits))
