"""Banzhaf values: closed forms first, then estimators against the definition."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import pytest
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.valuation import banzhaf, coalitions
from bangs.valuation.banzhaf import MSR, WLS, Estimator, Exact, Game, Gradient, Marginals, MeanField
from tests.conftest import generators
from tests.valuation.games import Additive, Glove, Interacting, Majority


def definition(game: Game, k: int) -> Tensor:
    """The value by its definition, coalition by coalition: [R, K]."""
    players = range(game.players)
    values = []
    for i in players:
        others = [j for j in players if j != i]
        gains = []
        for size in range(min(k, game.players)):
            for some in combinations(others, size):
                members = torch.zeros(game.runs, 2, game.players, dtype=torch.bool)
                members[:, :, list(some)] = True
                members[:, 1, i] = True
                worth = game(members)
                gains.append(worth[:, 1] - worth[:, 0])
        values.append(torch.stack(gains).mean(0))
    return torch.stack(values, dim=1)


@pytest.mark.parametrize("k", [1, 2, 4, 7, 20])
def test_players_of_an_additive_game_are_worth_what_they_bring(k: int) -> None:
    amounts = torch.tensor([[3.0, 0.0, -1.0, 2.0, 0.5, 0.5, 1.0]], dtype=torch.float64)
    assert torch.allclose(Exact()(Additive(amounts, offset=5), k).mean, amounts)


@pytest.mark.parametrize(("players", "k"), [(3, 3), (5, 5), (5, 3), (5, 2), (7, 5), (4, 2), (6, 4)])
def test_majority(players: int, k: int) -> None:
    half = players // 2
    tipped = math.comb(players - 1, half) if half < k else 0
    expected = tipped / sum(math.comb(players - 1, m) for m in range(k))
    assert torch.allclose(Exact()(Majority(players), k).mean, torch.full((1, players), expected, dtype=torch.float64))


def test_gloves() -> None:
    assert torch.allclose(Exact()(Glove(1, 2), 3).mean, torch.tensor([[0.75, 0.25, 0.25]], dtype=torch.float64))
    # with two players at most: the left glove meets nobody or one right glove; a right one nobody, the left, the right
    assert torch.allclose(Exact()(Glove(1, 2), 2).mean, torch.tensor([[2 / 3, 1 / 3, 1 / 3]], dtype=torch.float64))


@pytest.mark.parametrize("k", [1, 3, 6, 9])
def test_exact_is_the_definition(k: int) -> None:
    game = Interacting.random(2, 6, seed=1)
    assert torch.allclose(Exact()(game, k).mean, definition(game, k))


def test_a_player_who_changes_nothing_is_worth_nothing() -> None:
    game = Interacting.random(1, 8, seed=2)
    game.strength[:, :, 3] = 0
    for estimator in (Exact(), Marginals(5), Gradient(5), MeanField()):
        assert estimator(game, 3, generators(0)).mean[0, 3] == pytest.approx(0, abs=1e-12)


CONVERGING: list[tuple[Callable[[int], Estimator], int]] = [(MSR, 60_000), (WLS, 20_000), (Marginals, 4000)]


@pytest.mark.parametrize(("make", "samples"), CONVERGING, ids=["msr", "wls", "marginals"])
@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_estimators_converge_to_the_exact_value(make: Callable[[int], Estimator], samples: int, k: int) -> None:
    game = Interacting.random(2, 9, seed=3)
    exact = Exact()(game, k).mean
    values = make(samples)(game, k, generators(1, 2))
    assert (values.mean - exact).abs().max() < 0.03 * exact.abs().max()


@pytest.mark.parametrize("make", [MSR, WLS, Marginals], ids=["msr", "wls", "marginals"])
def test_standard_errors_match_the_errors_of_estimates(make: Callable[[int], Estimator]) -> None:
    game = Interacting.random(60, 8, seed=4)
    game = Interacting(game.strength[:1].repeat(60, 1, 1), game.scale[:1].repeat(60, 1))
    values = make(200)(game, 3, generators(*range(60)))
    assert values.stderr is not None
    spread = values.mean.std(0)
    claimed = values.stderr.mean(0)
    # blocks share the players evenly and err less than independent draws
    least = 0.1 if make is Marginals else 0.6
    assert (spread < 1.6 * claimed).all()
    assert (spread > least * claimed).all()


def test_balanced_blocks_err_less_than_independent_coalitions() -> None:
    game = Interacting.random(1, 30, seed=5)
    game = Interacting(game.strength * 0.2, game.scale)
    runs = Interacting(game.strength.repeat(40, 1, 1), game.scale.repeat(40, 1))
    members = coalitions.draw(30, 10, 12, generators(*range(40)))
    counts = members | (members.sum(2, keepdim=True) < 10)
    change = banzhaf.marginals(runs, members)
    independent = ((change * counts).sum(1) / counts.sum(1)).std(0).mean()
    assert Marginals(12)(runs, 10, generators(*range(40))).mean.std(0).mean() < 0.7 * independent


def weights(members: Tensor, k: int) -> Tensor:
    players = members.shape[2]
    return coalitions.regression_weights(players, k)[members.sum(2)]


@pytest.mark.parametrize("k", [1, 2, 5, 8, 12])
def test_regression_on_all_coalitions_gives_the_values_and_their_constant(k: int) -> None:
    game = Interacting.random(2, 8, seed=6)
    members = coalitions.every(8, k).expand(2, -1, -1)
    mean, _ = banzhaf.fit(members, game(members), k, weights(members, k))
    assert torch.allclose(mean, Exact()(game, k).mean, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_mean_value_is_a_difference_of_mean_worths(k: int) -> None:
    game = Interacting.random(1, 7, seed=7)
    members = coalitions.every(7, k)
    worth = game(members[None])[0]
    level = torch.stack([worth[members.sum(1) == m].mean() for m in range(k + 1)])
    law = coalitions.marginal_law(7, k)
    assert float(Exact()(game, k).mean.mean()) == pytest.approx(float((law * (level[1:] - level[:-1])).sum()))


def test_too_few_coalitions_still_give_finite_values() -> None:
    values = WLS(10)(Interacting.random(1, 40, seed=8), 20, generators(0))
    assert torch.isfinite(values.mean).all()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_msr_without_the_correction_is_off_by_the_known_bias(k: int) -> None:
    """Coalitions of size k without i have no counterpart with i: bias = ω_k (Ū_{<k} − Ū_k), means without i."""
    game = Interacting.random(1, 7, seed=9)
    members = coalitions.every(7, k)
    worth = game(members[None])[0]
    size = members.sum(1)
    for without, biased in (("smaller", False), ("all", True)):
        bound = k if without == "smaller" else 8
        mean = banzhaf._difference(members[None], worth[None], bound)[0][0]
        for i in range(7):
            away = ~members[:, i]
            omega = float((away & (size == k)).sum() / away.sum())
            bias = omega * float(worth[away & (size < k)].mean() - worth[away & (size == k)].mean())
            expected = float(Exact()(game, k).mean[0, i]) + (bias if biased else 0.0)
            assert float(mean[i]) == pytest.approx(expected)


def test_both_laws_of_msr_are_drawn_from() -> None:
    game = Additive(torch.ones(1, 10, dtype=torch.float64))
    right = MSR(4000)(game, 3, generators(1)).mean
    shifted = MSR(4000, without="all")(game, 3, generators(1)).mean
    assert (right - shifted).mean() > 0.3


def test_the_gradient_is_exact_where_a_player_acts_linearly() -> None:
    @dataclass(frozen=True)
    class Pairs:
        """U(m) = Σ_{i<j} w_ij mᵢ mⱼ: linear in every single player."""

        pairs: Tensor
        runs: int = 1
        players: int = 6
        device: torch.device = torch.device("cpu")  # noqa: RUF009

        def __call__(self, members: Tensor) -> Tensor:
            m = members.double()
            return torch.einsum("rbi,ij,rbj->rb", m, self.pairs.triu(1), m)

    game = Pairs(torch.randn(6, 6, dtype=torch.float64, generator=generators(1)[0]))
    exact = Exact()(game, 3).mean
    assert torch.allclose(Gradient(20_000)(game, 3, generators(2)).mean, exact, atol=0.03)
    assert torch.allclose(MeanField()(game, 6, ()).mean, Exact()(game, 6).mean)


@pytest.mark.parametrize(("players", "k"), [(12, 12), (12, 6), (30, 6), (30, 2)])
def test_the_mean_field_is_close_where_players_are_weak(players: int, k: int) -> None:
    game = Interacting.random(1, players, seed=10)
    game = Interacting(game.strength * 0.1, game.scale)
    reference = Marginals(3000)(game, k, generators(3)).mean
    error = MeanField()(game, k, ()).mean - reference
    assert error.abs().max() < 0.05 * reference.abs().max()


@pytest.mark.parametrize(("players", "k", "groups"), [(12, 12, 1), (24, 8, 4), (32, 1, 32)])
def test_the_mean_field_evaluates_a_player_at_a_half_while_the_mean_is_that_of_coalitions(
    players: int, k: int, groups: int
) -> None:
    recorded = []

    class Watched(Additive):
        def gradient(self, members: Tensor) -> Tensor:
            recorded.append(members)
            return members

    values = MeanField()(Watched(torch.ones(1, players)), k, ())
    share = coalitions.mean_share(players, k)
    expected = {12: share, 24: 0.5, 32: 0.0}[players]  # with k = 1 no other player is in, and nothing is left of a half
    torch.testing.assert_close(values.mean, torch.full((1, players), expected, dtype=torch.float64))
    torch.testing.assert_close(recorded[0].mean(2), torch.full((1, groups), share))
    assert values.evaluations == groups


def test_a_standard_error_is_that_of_a_mean_of_so_many() -> None:
    """Of 1, 2 and 3 the mean is 2 and its variance 1/3; of 1 and 3, the second left out, 2 and 1."""
    worth = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)[None, :, None]
    weight = torch.tensor([[1, 1], [1, 0], [1, 1]])[None]
    mean, variance = banzhaf._moments(worth, weight)
    assert mean.tolist() == [[2.0, 2.0]]
    assert variance.tolist() == [[pytest.approx(1 / 3), pytest.approx(1.0)]]


def test_who_weighs_twice_counts_twice_in_the_mean_and_fourfold_in_its_variance() -> None:
    """Of 1 and 4, the second weighing twice, the mean is 3; (1·2² + 2²·1²) / 3² = 8/9 of 9/5 effective draws is 2."""
    worth = torch.tensor([1.0, 4.0], dtype=torch.float64)[None, :, None]
    mean, variance = banzhaf._moments(worth, torch.tensor([1.0, 2.0])[None, :, None])
    assert mean.item() == 3.0
    assert variance.item() == pytest.approx(2.0)


def test_a_player_drawn_on_one_side_only_gets_the_mean_of_that_side() -> None:
    """A single coalition holds some players and not the others, and in an additive game either side is enough."""
    amounts = torch.tensor([[3.0, -1.0, 2.0, 0.5]], dtype=torch.float64)
    for seed in range(4):
        assert torch.allclose(Gradient(1)(Additive(amounts), 4, generators(seed)).mean, amounts)


def test_the_standard_error_of_a_gradient_is_that_of_the_mean_of_its_two_ends() -> None:
    """Draws of slopes with variance 1 on either side, n₁ and n₂ of them: √(1/n₁ + 1/n₂) / 2."""

    class Noisy(Additive):
        def gradient(self, members: Tensor) -> Tensor:
            recorded.append(members)
            return torch.randn(members.shape, generator=generators(1)[0], dtype=torch.float64)

    recorded: list[Tensor] = []
    values = Gradient(4000)(Noisy(torch.ones(1, 6)), 6, generators(2))
    there = recorded[0].sum(1)
    assert values.stderr is not None
    torch.testing.assert_close(values.stderr, (1 / there + 1 / (4000 - there)).sqrt().double() / 2, rtol=0.1, atol=0)


@pytest.mark.parametrize(("players", "count"), [(3, 1000), (250, 1250)])
def test_a_regression_draws_a_thousand_coalitions_or_five_for_every_player(players: int, count: int) -> None:
    assert WLS()(Additive(torch.ones(1, players)), 2, generators(0)).evaluations == count


def test_evaluations_are_those_a_plain_game_would_need() -> None:
    game = Interacting.random(1, 7)
    counts = {"exact": 1 + 7 + 21, "msr": 50, "wls": 50, "gradient": 50, "marginals": 50 * 8, "meanfield": 7}
    for name, count in counts.items():
        assert banzhaf.ESTIMATORS[name](50)(game, 2, generators(0)).evaluations == count, name


@pytest.mark.parametrize("name", sorted(banzhaf.ESTIMATORS))
def test_a_run_alone_equals_the_run_in_a_batch(name: str) -> None:
    game = Interacting.random(3, 8, seed=11)
    estimator = banzhaf.ESTIMATORS[name](50)
    together = estimator(game, 3, generators(1, 2, 3))
    alone = estimator(Interacting(game.strength[1:2], game.scale[1:2]), 3, generators(2))
    assert torch.allclose(together.mean[1:2], alone.mean, atol=1e-12)
    assert together.evaluations == alone.evaluations > 0
    if together.stderr is not None and alone.stderr is not None:
        assert torch.allclose(together.stderr[1:2], alone.stderr, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", sorted(banzhaf.ESTIMATORS))
@pytest.mark.parametrize(("players", "k"), [(1, 1), (1, 5), (2, 1), (5, 5), (5, 9), (6, 1)])
def test_the_smallest_games_have_finite_values(name: str, players: int, k: int) -> None:
    amounts = torch.arange(1.0, players + 1, dtype=torch.float64)[None]
    values = banzhaf.ESTIMATORS[name](400)(Additive(amounts), k, generators(0))
    assert torch.isfinite(values.mean).all()
    if name != "msr":  # whose noise is that of all other players
        assert torch.allclose(values.mean, amounts, atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(banzhaf.ESTIMATORS) - {"exact"}))
def test_a_single_sample_gives_finite_values_and_no_pretence_of_precision(name: str) -> None:
    values = banzhaf.ESTIMATORS[name](1)(Interacting.random(1, 12, seed=13), 3, generators(0))
    assert torch.isfinite(values.mean).all()
    if name in ("msr", "marginals", "gradient"):
        assert values.stderr is not None
        assert values.stderr.isnan().all()


def test_generic_marginals_flip_and_generic_gradients_differentiate() -> None:
    game = Interacting.random(2, 5, seed=12)
    members = coalitions.draw(5, 3, 4, generators(1, 2))
    change = banzhaf.marginals(game, members)
    for i in range(5):
        there, away = members.clone(), members.clone()
        there[:, :, i], away[:, :, i] = True, False
        assert torch.allclose(change[:, :, i], game(there) - game(away))
    degree = torch.rand(2, 4, 5, dtype=torch.float64)
    step = torch.zeros(5, dtype=torch.float64)
    step[2] = 1e-6
    numeric = (game(degree + step) - game(degree - step)) / 2e-6
    assert torch.allclose(banzhaf.gradient(game, degree)[:, :, 2], numeric, atol=1e-6)


def test_names_lead_to_estimators() -> None:
    assert set(banzhaf.ESTIMATORS) == {"exact", "msr", "wls", "marginals", "gradient", "meanfield"}
    assert banzhaf.DEFAULT in banzhaf.ESTIMATORS
    assert banzhaf.ESTIMATORS["msr"](None) == MSR(500)
    assert banzhaf.ESTIMATORS["wls"](77) == WLS(77)


BY_NAME = [banzhaf.ESTIMATORS[name] for name in ("msr", "wls", "marginals", "gradient")]


@pytest.mark.parametrize("make", [MSR, WLS, Marginals, Gradient, *BY_NAME])
def test_no_samples_is_a_mistake(make: Callable[[int], Estimator]) -> None:
    with pytest.raises(InvalidInput, match=r"samples must be at least 1, got 0"):
        make(0)


def test_a_law_of_msr_that_is_none_is_a_mistake() -> None:
    with pytest.raises(InvalidInput, match=r"MSR.without must be one of smaller, all, got 'smaler'"):
        MSR(without="smaler")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(banzhaf.ESTIMATORS))
def test_k_of_zero_is_a_mistake(name: str) -> None:
    with pytest.raises(InvalidInput, match="must be at least 1, got 0"):
        banzhaf.ESTIMATORS[name](5)(Majority(3), 0, generators(0))
