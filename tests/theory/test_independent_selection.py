"""Appendix B.2: the chain rule, and how far the k best by value are from the best set of k."""

from itertools import combinations

import numpy as np
import pytest

from tests.theory.definitions import Array, Game, banzhaf, best, coalitions
from tests.theory.measured_games import larger, regrets


def conditional(joint: Array, one: tuple[int, ...], other: tuple[int, ...], given: tuple[int, ...]) -> float:
    """I(one; other | given) of a table with an axis for every variable."""

    def joint_entropy(axes: tuple[int, ...]) -> float:
        rest = tuple(axis for axis in range(joint.ndim) if axis not in axes)
        probs = joint.sum(rest)
        return float(-(probs[probs > 0] * np.log(probs[probs > 0])).sum())

    return (
        joint_entropy(one + given)
        + joint_entropy(other + given)
        - joint_entropy(one + other + given)
        - joint_entropy(given)
    )


TRUTH, STUDENT, FIRST, SECOND = 0, 1, 2, 3  # y, ŷ and two pseudo-labels


@pytest.mark.parametrize("seed", range(5))
def test_the_printed_chain_rule_counts_the_students_prediction_once_a_label(seed: int) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    whole = conditional(joint, (STUDENT, FIRST, SECOND), (TRUTH,), ())
    true = (
        conditional(joint, (STUDENT,), (TRUTH,), ())
        + conditional(joint, (FIRST,), (TRUTH,), (STUDENT,))
        + conditional(joint, (SECOND,), (TRUTH,), (STUDENT, FIRST))
    )
    printed = conditional(joint, (STUDENT, FIRST), (TRUTH,), ()) + conditional(
        joint, (STUDENT, SECOND), (TRUTH,), (FIRST,)
    )
    assert true == pytest.approx(whole)
    assert printed - whole == pytest.approx(conditional(joint, (STUDENT,), (TRUTH,), (FIRST,)))
    assert printed > whole + 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_is_the_difference_that_the_appendix_begins_with(seed: int) -> None:
    joint = np.random.default_rng(seed).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    labels = (FIRST, SECOND)
    whole = conditional(joint, (STUDENT, *labels), (TRUTH,), ())
    assert conditional(joint, (STUDENT,), (TRUTH,), labels) == pytest.approx(
        whole - conditional(joint, labels, (TRUTH,), ())
    )


def test_conditioning_can_raise_and_lower_information_though_all_pairs_are_independent() -> None:
    exclusive_or = np.zeros((2, 2, 2))
    for one, other in np.ndindex(2, 2):
        exclusive_or[one, other, one ^ other] = 1 / 4
    assert conditional(exclusive_or, (0,), (1,), ()) == pytest.approx(0, abs=1e-12)
    assert conditional(exclusive_or, (0,), (1,), (2,)) == pytest.approx(np.log(2))
    copies = np.zeros((2, 2, 2))
    copies[0, 0, 0] = copies[1, 1, 1] = 1 / 2
    assert conditional(copies, (0,), (1,), ()) == pytest.approx(np.log(2))
    assert conditional(copies, (0,), (1,), (2,)) == pytest.approx(0, abs=1e-12)


def twins(k: int) -> Game:
    """Players 0 and 1 bring the same thing, worth 1 once; player 2 brings 0.6."""
    return {S: 1.0 * bool(S & {0, 1}) + 0.6 * (2 in S) for S in coalitions(range(3), k)}


def best_set(game: Game, players: int, k: int) -> frozenset[int]:
    return max(map(frozenset, combinations(range(players), k)), key=game.__getitem__)


def test_the_k_best_by_value_are_not_the_best_set() -> None:
    game = twins(2)
    value = banzhaf(game, 3, 2)
    np.testing.assert_allclose(value, [2 / 3, 2 / 3, 0.6])
    assert best(value, 2) == {0, 1}
    assert game[frozenset({0, 1})] == 1
    assert game[best_set(game, 3, 2)] == 1.6


def test_independent_selection_can_be_best_where_the_interactions_do_not_vanish() -> None:
    # "only when the sum of interactions is 0, independent selection provides the optimal estimation"
    amounts = np.array([3.0, 2.0, 1.0])
    game = {S: float(np.sqrt(amounts[list(S)].sum())) for S in coalitions(range(3), 2)}
    single = np.array([game[frozenset({i})] for i in range(3)])
    interaction = game[frozenset({0, 1})] - single[0] - single[1]
    assert interaction < -0.5
    assert best(single, 2) == best_set(game, 3, 2)


def test_independent_selection_can_fail_where_the_interactions_of_its_choice_vanish() -> None:
    game = {S: 1.0 * (0 in S) + 0.9 * (1 in S) + 0.1 * (2 in S) for S in coalitions(range(3), 2)}
    game[frozenset({0, 2})] += 2.0  # two that complete each other
    single = np.array([game[frozenset({i})] for i in range(3)])
    chosen = best(single, 2)
    assert game[chosen] == pytest.approx(single[list(chosen)].sum())
    assert chosen != best_set(game, 3, 2)


def test_by_value_is_nearer_to_the_best_set_than_by_single_utilities_and_farther_than_greedily() -> None:
    for row in regrets():
        assert 0 <= row.greedy < row.value < row.single
        assert 0.1 < row.value_best < 0.7  # "optimally select node sets" holds in a part of the games
        assert row.value < 0.5


def test_in_larger_games_too_greedily_is_best_and_by_single_utilities_worst() -> None:
    for row in larger():
        assert 0 < row.value < row.single
