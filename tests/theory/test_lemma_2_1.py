"""Lemma 2.1: the objective is the information between the node and its predicted class, not the true class."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.theory.definitions import Array, mutual_information, objective, softmax


def predictions(seed: int, nodes: int = 40, classes: int = 4) -> tuple[Array, NDArray[np.int_]]:
    """Predicted probabilities [N, C] and true classes [N] that know little of each other."""
    rng = np.random.default_rng(seed)
    return softmax(2 * rng.standard_normal((nodes, classes))), rng.integers(classes, size=nodes)


def joint_with_truth(probs: Array, truth: NDArray[np.int_]) -> Array:
    """p(true class, predicted class) [C, C] of a node drawn at random and a class drawn from its prediction."""
    classes = probs.shape[1]
    return np.stack([probs[truth == c].sum(0) for c in range(classes)]) / len(probs)


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_is_the_information_between_node_and_predicted_class(seed: int) -> None:
    probs, _ = predictions(seed)
    joint_with_node = probs / len(probs)  # a node drawn at random, then a class drawn from its prediction
    assert objective(probs) == pytest.approx(mutual_information(joint_with_node), abs=1e-12)


def test_predictions_that_know_nothing_of_the_truth_reach_the_largest_objective() -> None:
    classes, each = 4, 4
    truth = np.repeat(np.arange(classes), each)
    planted = np.eye(classes)[np.tile(np.arange(classes), each)]  # sure, balanced, and the same in every true class
    assert objective(planted) == pytest.approx(np.log(classes))
    assert mutual_information(joint_with_truth(planted, truth)) == pytest.approx(0, abs=1e-12)
    right = np.eye(classes)[truth]
    assert objective(right) == pytest.approx(objective(planted))  # the objective cannot tell the two apart
    assert mutual_information(joint_with_truth(right, truth)) == pytest.approx(np.log(classes))


@pytest.mark.parametrize("seed", range(20))
def test_the_objective_is_never_less_than_the_information_about_the_truth(seed: int) -> None:
    probs, truth = predictions(seed)
    assert objective(probs) >= mutual_information(joint_with_truth(probs, truth)) - 1e-12


def test_the_two_agree_where_nodes_of_one_class_have_one_prediction() -> None:
    probs, truth = predictions(0)
    by_class = softmax(np.random.default_rng(1).standard_normal((4, 4)))[truth]
    assert objective(by_class) == pytest.approx(mutual_information(joint_with_truth(by_class, truth)), abs=1e-12)
    assert objective(probs) > mutual_information(joint_with_truth(probs, truth)) + 0.1


@pytest.mark.parametrize("seed", range(5))
def test_the_last_line_of_the_appendix_has_the_wrong_sign(seed: int) -> None:
    probs, _ = predictions(seed)
    individual = -(probs * np.log(probs)).sum(1).mean()
    pooled = -(probs.mean(0) * np.log(probs.mean(0))).sum()
    printed = individual - pooled
    assert printed < 0  # no information is negative
    assert -printed == pytest.approx(objective(probs))


def test_with_the_sum_of_entropies_that_the_text_names_the_order_of_predictions_changes() -> None:
    sure_but_one_sided = np.array([[0.9, 0.1]] * 4)
    unsure_but_balanced = np.array([[0.8, 0.2]] * 2 + [[0.2, 0.8]] * 2)

    def with_sum(probs: Array) -> float:
        return float(objective(probs) - (len(probs) - 1) * -(probs * np.log(probs)).sum(1).mean())

    assert objective(unsure_but_balanced) > objective(sure_but_one_sided)
    assert with_sum(unsure_but_balanced) < with_sum(sure_but_one_sided)
