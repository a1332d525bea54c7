"""Def. 3.3, the k-bounded Banzhaf value, and the difference D_ij of two values."""

from math import comb

import numpy as np
import pytest

from tests.theory.definitions import Array, Game, banzhaf, coalitions, distinguishability, orders

SIZES = [(2, 2), (4, 2), (5, 3), (6, 4), (6, 6)]


def random_game(players: int, k: int, seed: int) -> Game:
    rng = np.random.default_rng(seed)
    return {S: float(rng.standard_normal()) for S in coalitions(range(players), k)}


def additive(amounts: Array, k: int) -> Game:
    return {S: float(amounts[list(S)].sum()) for S in coalitions(range(len(amounts)), k)}


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_players_of_an_additive_game_are_worth_what_they_bring(players: int, k: int) -> None:
    amounts = np.arange(players) - 1.5
    np.testing.assert_allclose(banzhaf(additive(amounts, k), players, k), amounts)


def test_as_printed_without_the_sum_over_sizes_they_are_not() -> None:
    # Eq. 3 has |S| = m − 1 below the sum and nowhere says m = 1 … k, while n_s counts all sizes
    players, k, amounts = 5, 3, np.arange(5.0) + 1
    game = additive(amounts, k)
    for m in range(1, k + 1):
        others = [S for S in coalitions(range(1, players), k - 1) if len(S) == m - 1]
        printed = sum(game[S | {0}] - game[S] for S in others) / orders(players, k)
        assert printed == pytest.approx(amounts[0] * comb(players - 1, m - 1) / orders(players, k))
        assert printed < 0.6 * amounts[0]


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_n_s_counts_the_coalitions_without_the_player_and_not_all(players: int, k: int) -> None:
    without = coalitions(range(1, players), k - 1)
    assert orders(players, k) == len(without)
    assert orders(players, k) < len(coalitions(range(players), k))  # "all possible coalitions up to size k"


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_values_are_linear_in_the_game_and_nothing_for_a_player_who_adds_nothing(players: int, k: int) -> None:
    one, other = random_game(players, k, 0), random_game(players, k, 1)
    both = {S: 2 * one[S] - 3 * other[S] for S in one}
    np.testing.assert_allclose(
        banzhaf(both, players, k), 2 * banzhaf(one, players, k) - 3 * banzhaf(other, players, k), atol=1e-12
    )
    idle = {S: one[S - {0}] for S in one}
    assert banzhaf(idle, players, k)[0] == pytest.approx(0)


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_the_difference_of_two_values_has_a_factor_two_below_size_k_and_a_term_at_k(players: int, k: int) -> None:
    game = random_game(players, k, 2)
    value = banzhaf(game, players, k)
    terms = [
        (2 if m < k else 1) * comb(players - 2, m - 1) * distinguishability(game, players, 0, 1, m)
        for m in range(1, k + 1)
        if comb(players - 2, m - 1)  # two of two players leave nobody for a third
    ]
    assert value[0] - value[1] == pytest.approx(sum(terms) / orders(players, k))


def test_the_printed_difference_is_less_than_half_of_it() -> None:
    players, k = 5, 3
    game = additive(np.array([1.0, 0.0, 0.5, 0.5, 0.5]), k)
    value = banzhaf(game, players, k)
    true = k * (value[0] - value[1])
    printed = (
        k
        / orders(players, k)
        * sum(comb(players - 2, m - 1) * distinguishability(game, players, 0, 1, m) for m in range(1, k))
    )
    assert true == pytest.approx(3)
    assert printed == pytest.approx(3 * 4 / 11)
