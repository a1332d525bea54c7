"""Thm 3.2: how far the utility may be wrong before two players change their order."""

from functools import cache
from math import sqrt

import numpy as np
import pytest

from tests.theory.definitions import (
    Array,
    Coalition,
    Game,
    banzhaf,
    coalitions,
    distinguishability,
    margin,
    orders,
    printed_margin,
)
from tests.theory.measured_games import silence

SIZES = [(2, 2), (4, 2), (5, 3), (5, 5), (6, 4), (7, 2)]
ONE, OTHER = 0, 1  # i and j of the theorem


@cache
def functional(players: int, k: int) -> Array:
    """The vector a with n_s (φ_i − φ_j) = a · U, from the definition applied to one coalition at a time."""
    sets = coalitions(range(players), k)
    entries = []
    for one in sets:
        value = banzhaf({S: float(one == S) for S in sets}, players, k)
        entries.append(orders(players, k) * (value[ONE] - value[OTHER]))
    return np.array(entries)


def vector(game: Game) -> Array:
    return np.array(list(game.values()))


def game_of(worth: Array, players: int, k: int) -> Game:
    return dict(zip(coalitions(range(players), k), worth.tolist(), strict=True))


def apart(worth: Array, players: int, k: int) -> float:
    """φ_i − φ_j by the definition."""
    value = banzhaf(game_of(worth, players, k), players, k)
    return float(value[ONE] - value[OTHER])


def sizes(players: int, k: int) -> range:
    """The m for which two of the players leave m − 1 others."""
    return range(1, min(k, players - 1) + 1)


def with_distinguishability(wanted: dict[int, float], players: int, k: int, seed: int) -> Array:
    """A random game in which Δ^(m) is as wanted: what is missing is given to the sets with i and without j."""
    rng = np.random.default_rng(seed)
    game = {S: float(rng.standard_normal()) for S in coalitions(range(players), k)}
    missing = {m: wanted[m] - distinguishability(game, players, ONE, OTHER, m) for m in wanted}
    return vector({S: worth + _due(S, missing) for S, worth in game.items()})


def _due(members: Coalition, missing: dict[int, float]) -> float:
    return missing[len(members)] if ONE in members and OTHER not in members else 0.0


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_a_set_below_size_k_counts_twice_and_one_of_size_k_once(players: int, k: int) -> None:
    for entry, S in zip(functional(players, k), coalitions(range(players), k), strict=True):
        sign = (ONE in S) - (OTHER in S)
        assert entry == pytest.approx(sign * (2 if len(S) < k else 1), abs=1e-9)


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_the_corrected_margin_is_tight(players: int, k: int) -> None:
    a = functional(players, k)
    for seed in range(20):
        worth = with_distinguishability(dict.fromkeys(sizes(players, k), 1.0), players, k, seed)
        against = -a / np.linalg.norm(a) * margin(players, k)
        assert apart(worth, players, k) > 0
        assert apart(worth + 0.999 * against, players, k) > 0
        assert apart(worth + 1.001 * against, players, k) < 0


@pytest.mark.parametrize(("players", "k"), SIZES)
def test_below_the_corrected_margin_no_game_and_no_direction_changes_the_order(players: int, k: int) -> None:
    a, rng = functional(players, k), np.random.default_rng(1)
    for seed in range(200):
        wanted = {m: 1.0 + rng.exponential() for m in sizes(players, k)}
        worth = with_distinguishability(wanted, players, k, seed)
        noise = rng.standard_normal(len(a))
        for direction in (-a, noise, noise - 3 * a):
            moved = worth + 0.999 * min(wanted.values()) * margin(players, k) * direction / np.linalg.norm(direction)
            assert a @ worth > 0
            assert a @ moved > 0


def test_two_players_change_their_order_at_the_printed_bound() -> None:
    players = k = 2
    worth = vector({frozenset(): 0.0, frozenset({0}): 1.0, frozenset({1}): 0.0, frozenset({0, 1}): 1.0})
    move = np.array([0.0, -1 / sqrt(2), 1 / sqrt(2), 0.0])
    assert distinguishability(game_of(worth, players, k), players, ONE, OTHER, 1) == 1  # τ = 1
    assert np.linalg.norm(move) == pytest.approx(printed_margin(players, k))
    assert apart(worth, players, k) > 0 > apart(worth + move, players, k)
    assert margin(players, k) == pytest.approx(1 / sqrt(2))  # where the order does change


@pytest.mark.parametrize(("players", "k"), [(4, 2), (5, 3), (6, 4), (7, 2)])
def test_under_the_printed_condition_any_error_however_small_can_change_the_order(players: int, k: int) -> None:
    # the printed condition says nothing of m = k, where the difference may be as negative as it likes
    a = functional(players, k)
    below, at = (a == 2).sum(), (a == 1).sum()
    wanted = dict.fromkeys(range(1, k), 1.0) | {k: -2 * below / at + 1e-6}
    worth = with_distinguishability(wanted, players, k, 0)
    move = -1e-5 * a / np.linalg.norm(a)
    assert np.linalg.norm(move) < 1e-4 * printed_margin(players, k)
    assert apart(worth, players, k) > 0 > apart(worth + move, players, k)


def test_where_the_printed_margin_is_too_large_and_where_too_small() -> None:
    # √A exceeds the tight margin where A / B > (1 + √5) / 4
    golden = (1 + sqrt(5)) / 4
    for players in range(3, 30):
        for k in range(1, players):
            below, at = printed_margin(players, k) ** 2, orders(players - 1, k) - printed_margin(players, k) ** 2
            assert (printed_margin(players, k) > margin(players, k)) == (below / at > golden)
    assert printed_margin(8, 8) / margin(8, 8) == pytest.approx(sqrt(2))  # the whole Banzhaf value
    assert printed_margin(8, 1) == 0 < margin(8, 1)


def test_in_games_of_information_the_theorem_is_silent_about_some_pairs() -> None:
    for row in silence():
        assert 0.7 < row.pairs < 0.97
