"""Section 3.3, values from sampled coalitions (MSR): what the printed formula estimates."""

from math import comb

import numpy as np
import pytest

from tests.theory.definitions import Game, banzhaf, coalitions, orders
from tests.theory.measured_games import biases, msr_limit

SIZES = [(4, 2), (6, 3), (8, 4), (8, 8)]


def random_game(players: int, k: int, seed: int) -> Game:
    rng = np.random.default_rng(seed)
    return {S: len(S) + float(rng.standard_normal()) for S in coalitions(range(players), k)}


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_the_value_is_a_difference_of_means_and_the_printed_factor_is_spurious(players: int, k: int) -> None:
    game = random_game(players, k, 0)
    value = banzhaf(game, players, k)
    for i in range(players):
        without = coalitions([j for j in range(players) if j != i], k - 1)
        means = np.mean([game[S | {i}] for S in without]) - np.mean([game[S] for S in without])
        assert means == pytest.approx(value[i])
        assert means / orders(players, k) != pytest.approx(value[i], rel=0.1)


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_leaving_sets_of_size_k_out_of_the_second_mean_gives_the_value(players: int, k: int) -> None:
    game = random_game(players, k, 1)
    np.testing.assert_allclose(msr_limit(game, players, k - 1), banzhaf(game, players, k), atol=1e-12)


@pytest.mark.parametrize(("players", "k"), [(4, 2), (6, 3), (8, 4)])
def test_the_printed_second_mean_has_a_known_bias(players: int, k: int) -> None:
    game = random_game(players, k, 2)
    printed, value = msr_limit(game, players, k), banzhaf(game, players, k)
    share = comb(players - 1, k) / sum(comb(players - 1, s) for s in range(k + 1))
    for i in range(players):
        smaller = np.mean([game[S] for S in game if i not in S and len(S) < k])
        largest = np.mean([game[S] for S in game if i not in S and len(S) == k])
        assert printed[i] - value[i] == pytest.approx(share * (smaller - largest))
        assert printed[i] < value[i] - 0.1


def test_the_bias_hardly_changes_the_order() -> None:
    for row in biases():
        assert row.mean > 0.98
        assert row.least > 0.85


def test_the_noise_of_a_value_is_the_worth_of_all_the_others() -> None:
    # of B coalitions drawn, the value of a player who adds nothing has the variance 4 Var(U) / B
    players, draws, trials = 8, 200, 400
    rng = np.random.default_rng(3)
    amounts = np.array([0.0, *np.ones(players - 1)])
    members = rng.random((trials, draws, players)) < 0.5
    worth = members @ amounts
    inside = members[..., 0]
    found = np.array([w[m].mean() - w[~m].mean() for w, m in zip(worth, inside, strict=True)])
    assert found.var() == pytest.approx(4 * amounts.sum() / 4 / draws, rel=0.25)
