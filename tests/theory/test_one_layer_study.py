"""Appendix B.5, the case study with one layer: what of its steps holds."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.theory.definitions import (
    Array,
    entropy,
    objective,
    pagerank,
    row_normalised,
    scale_free,
    softmax,
    total_variation,
)


def test_scaling_logits_changes_the_entropy() -> None:
    # the study says that a factor common to all logits leaves their entropy as it is
    logits = np.array([2.0, 0.0])
    assert entropy(softmax(logits)) > 2 * entropy(softmax(2 * logits))
    even = np.array([3.0, 3.0])
    assert entropy(softmax(even)) == pytest.approx(entropy(softmax(2 * even)))  # alike only where p is uniform


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_the_entropy_falls_with_the_scale_by_the_variance_of_the_logits(scale: float) -> None:
    logits, small = np.random.default_rng(0).standard_normal(5), 1e-5
    probs = softmax(scale * logits)
    variance = (probs * logits**2).sum() - (probs * logits).sum() ** 2
    slope = (entropy(softmax((scale + small) * logits)) - entropy(softmax((scale - small) * logits))) / (2 * small)
    assert slope == pytest.approx(-scale * variance, rel=1e-5)


def test_steps_into_a_node_do_not_sum_to_one() -> None:
    # the study has Σ_k P(k → j) = 1 over neighbours k, where only Σ_k P(j → k) = 1 holds
    step = row_normalised(scale_free(20, 2, seed=0))
    np.testing.assert_allclose(step.sum(1), 1)
    assert np.abs(step.sum(0) - 1).max() > 0.5


def test_the_printed_gradient_is_the_same_for_all_weights_of_a_class_and_the_true_one_is_not() -> None:
    rng = np.random.default_rng(1)
    x, y = torch.tensor(rng.standard_normal((12, 4))), torch.tensor(rng.integers(3, size=12))
    weight = torch.tensor(rng.standard_normal((4, 3)), requires_grad=True)
    logits = x @ weight
    torch.nn.functional.cross_entropy(logits, y, reduction="sum").backward()
    with torch.no_grad():
        by_logit = logits.softmax(1) - torch.nn.functional.one_hot(y, 3)  # ∂L_i/∂x'_i
        torch.testing.assert_close(weight.grad, x.T @ by_logit)  # Σ_i x_iq ∂L_i/∂x'_id
        printed = (by_logit * x.sum(1, keepdim=True)).sum(0).expand(4, 3)  # Σ_i ∂L_i/∂x'_id Σ_q x_iq
        assert (printed - weight.grad).abs().max() > 1
        torch.testing.assert_close(printed, weight.grad.sum(0).expand(4, 3))  # it is the sum over q


@pytest.mark.parametrize("seed", range(5))
def test_what_it_concludes_holds_differences_in_proportion_give_equal_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    teacher, ratio = rng.standard_normal((6, 4)), 1.7
    student = ratio * teacher + rng.standard_normal((6, 1))  # differences between classes are 1.7 times the teacher's
    np.testing.assert_allclose(softmax(student), softmax(ratio * teacher))


def test_under_its_assumption_every_set_is_worth_nothing() -> None:
    # expected features that depend on the class position alone give every node the same logits
    nodes, shared = 30, np.array([1.0, 0.0, -1.0])
    step = row_normalised(scale_free(nodes, 2, seed=2))
    student = step @ np.tile(shared, (nodes, 1))
    assert objective(softmax(student)) == pytest.approx(0, abs=1e-12)
    reach, sources = pagerank(step, 0.15), np.arange(nodes) % 5 == 0
    estimate, arrived = reach[:, sources] @ np.tile(shared, (sources.sum(), 1)), reach[:, sources].sum(1, keepdims=True)
    assert objective(softmax(estimate / arrived)) == pytest.approx(0, abs=1e-12)
    assert objective(softmax(estimate)) > 1e-3  # Def. 3.2 sees a worth that is differences of mass alone


def test_to_predict_and_then_propagate_is_the_network_itself_only_without_gates() -> None:
    # E[x_j] = Σ_i P_L(j → i) E[x'_i], x' the output without neighbours: L steps of the walk over single predictions
    rng = np.random.default_rng(3)
    step, x = row_normalised(scale_free(40, 2, seed=3)), rng.standard_normal((40, 5))
    first, second = rng.standard_normal((5, 8)), rng.standard_normal((8, 3))

    def network(gate: Callable[[Array], Array]) -> tuple[Array, Array]:
        """The logits of the network, and those of the walk over single predictions."""
        return step @ gate(step @ x @ first) @ second, step @ step @ (gate(x @ first) @ second)

    np.testing.assert_allclose(*network(lambda h: h), atol=1e-12)
    one, other = network(lambda h: np.maximum(h, 0))
    assert np.abs(one - other).mean() > 0.2 * np.abs(one).mean()


def test_small_errors_of_logits_are_small_errors_of_probabilities() -> None:
    # what the study takes from Lemma B.1: a change of range δ multiplies no probability by more than e^δ
    rng = np.random.default_rng(4)
    for delta in (0.01, 0.3, 2.0):
        logits, change = 3 * rng.standard_normal((200, 6)), delta * rng.random((200, 6))
        ratio = softmax(logits + change) / softmax(logits)
        assert np.exp(-delta) <= ratio.min() <= ratio.max() <= np.exp(delta)
        assert total_variation(softmax(logits + change), softmax(logits)).max() <= delta / 4 + 1e-12


def test_the_ratio_it_asks_for_differs_between_nodes_while_its_assumption_allows_one_for_all() -> None:
    # expected logits are the same at every node, and so is the student's ratio to the teacher; that of masses is not
    step = row_normalised(scale_free(40, 2, seed=4))
    reach, labelled, chosen = pagerank(step, 0.15), np.arange(40) < 5, np.arange(40) % 6 == 5
    ratio = reach[:, labelled | chosen].sum(1) / reach[:, labelled].sum(1)
    assert ratio.max() > 2 * ratio.min()
