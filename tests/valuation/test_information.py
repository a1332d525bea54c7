"""The information game against its slow twin, numbers by hand, and every way to divide the work."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput, OutOfMemory, ran_out_of_memory
from bangs.graphs.pagerank import PPR, ExactPPR, Matrix
from bangs.valuation import banzhaf, coalitions, dense_influence, influence, information
from bangs.valuation.banzhaf import Exact, Marginals, MeanField
from bangs.valuation.influence import Normalisation
from bangs.valuation.information import Information
from tests.conftest import generators
from tests.valuation.plain_information import PlainInformation


def ring(nodes: int, isolated: int = 0) -> Data:
    """A ring with chords, and some nodes that nobody knows."""
    source = torch.arange(nodes)
    edges = torch.cat([torch.stack([source, (source + step) % nodes]) for step in (1, 5)], dim=1)
    return Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=nodes + isolated)


def ring_game(runs: int = 2, nodes: int = 60, players: int = 8, classes: int = 4, **settings: Any) -> Information:
    """A game on the ring; every run has its own logits, known nodes and players."""
    random = torch.Generator().manual_seed(7)
    graph = ring(nodes, isolated=6)
    logits = 3 * torch.randn(runs, nodes + 6, classes, generator=random)
    order = torch.stack([torch.randperm(nodes, generator=random) for _ in range(runs)])
    known = torch.zeros(runs, nodes + 6, dtype=torch.bool).scatter(1, order[:, :5], True)
    return Information.of(PPR(steps=4)(graph), logits, known, order[:, 5 : 5 + players], **settings)


def plain(game: Information) -> PlainInformation:
    return PlainInformation(game.operator, game.logits, game.known, game.nodes, game.open, game.normalise)


def some(game: Information, count: int = 6, k: int = 5) -> Tensor:
    return coalitions.draw(game.players, k, count, generators(*range(game.runs)))


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_worth_equals_the_slow_twin(normalise: Normalisation) -> None:
    game = ring_game(normalise=normalise)
    members = some(game)
    assert torch.allclose(game(members), plain(game)(members), atol=1e-6)


def test_worth_is_the_mean_divergence_from_the_mean_prediction() -> None:
    game = ring_game(runs=1)
    members = some(game, 1)
    known = game.known[0].clone()
    known[game.nodes[0, members[0, 0]]] = True
    p = game.operator(game.logits[0] * known[:, None]).softmax(1)[game.open[0]].double()
    divergence = (p * (p / p.mean(0)).log()).sum(1).mean()
    assert float(game(members)) == pytest.approx(float(divergence), abs=1e-6)
    assert float(game(members)) > 0


def test_two_nodes_by_hand() -> None:
    """Node 0 is known with logits (2, 0), node 1 plays with (0, 4); P = [[.6, .4], [.3, .7]]."""
    operator = Matrix(torch.tensor([[0.6, 0.4], [0.3, 0.7]]))
    logits = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]])
    known = torch.tensor([[True, False]])
    members = torch.tensor([[[False], [True]]])
    both = torch.ones(1, 2, dtype=torch.bool)

    def information(*rows: tuple[float, float]) -> float:
        p = torch.tensor(rows, dtype=torch.float64).softmax(1)
        entropy = -(p * p.log()).sum(1).mean()
        return float(-(p.mean(0) * p.mean(0).log()).sum() - entropy)

    game = Information.of(operator, logits, known, torch.tensor([[1]]), open=both)
    expected = [information((1.2, 0), (0.6, 0)), information((1.2, 1.6), (0.6, 2.8))]
    assert game(members)[0].tolist() == pytest.approx(expected, abs=1e-6)

    # the mass that arrives from known nodes is .6 at node 0 and .3 at node 1; with the player it is 1
    game = replace(game, normalise="mass")
    expected = [information((2, 0), (2, 0)), information((1.2, 1.6), (0.6, 2.8))]
    assert game(members)[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert game.marginals(members)[0, :, 0].tolist() == pytest.approx([expected[1] - expected[0]] * 2, abs=1e-6)

    # a single open node is its own mean and has no information to give
    game = Information.of(operator, logits, known, torch.tensor([[1]]))
    assert game(members)[0].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_marginals_without_tolerance_are_flips(normalise: Normalisation) -> None:
    game = ring_game(normalise=normalise, tolerance=0)
    members = some(game)
    assert torch.allclose(game.marginals(members).double(), banzhaf.marginals(plain(game), members), atol=1e-6)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_marginals_with_tolerance_are_nearly_flips(normalise: Normalisation) -> None:
    game = ring_game(normalise=normalise)
    members = some(game)
    flips = banzhaf.marginals(plain(game), members)
    pairs = 0
    for tolerance, error in ((0.3, 0.05), (0.1, 0.025), (0.01, 0.001)):
        change = replace(game, tolerance=tolerance).marginals(members)
        assert (change - flips).abs().max() < error * flips.abs().max()
        assert pairs < (pairs := len(game._influence(slice(0, 1)).strong_pairs(tolerance).node))


def test_strong_pairs_are_found_with_the_mass_of_half_the_players() -> None:
    """In a mean over mass a player with share s moves two classes apart by s · span / mass at most."""
    game = ring_game(runs=1, normalise="mass")
    share = game.operator.columns(game.nodes[0])
    mass = game.operator(game.known[0].float()[:, None])[:, 0] + share.sum(1) / 2
    player_logits = game.logits[0, game.nodes[0]]
    span = float((player_logits.amax(1) - player_logits.amin(1)).max())
    moved = (share * span > game.tolerance * mass[:, None]) & game.open[0, :, None]
    near = game._influence(slice(0, 1)).strong_pairs(game.tolerance)
    assert torch.equal(torch.bincount(near.player, minlength=game.players), moved.sum(0))


def test_marginals_with_endless_tolerance_are_gradients() -> None:
    game = ring_game(tolerance=math.inf)
    members = some(game)
    assert torch.allclose(game.marginals(members), game.gradient(members), atol=1e-6)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_the_gradient_is_the_slope_of_the_worth(normalise: Normalisation) -> None:
    game = ring_game(normalise=normalise)
    degree = torch.rand(game.runs, 3, game.players, generator=generators(1)[0])
    slope = game.gradient(degree)
    for i in range(game.players):
        step = torch.zeros(game.players)
        step[i] = 5e-3
        numeric = (game(degree + step) - game(degree - step)) / 1e-2
        assert torch.allclose(slope[:, :, i].double(), numeric, atol=1e-4, rtol=2e-3)


@pytest.mark.parametrize("budget", [1, 10_000, 2**20])
def test_the_budget_does_not_change_the_outcome(budget: int) -> None:
    game, tight = ring_game(), ring_game(budget=budget)
    members = some(game)
    assert torch.allclose(game(members), tight(members), atol=1e-9)
    assert torch.allclose(game.marginals(members), tight.marginals(members), atol=1e-7)
    assert torch.allclose(game.gradient(members), tight.gradient(members), atol=1e-7)


def test_a_small_budget_evaluates_few_coalitions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    game = ring_game(runs=1, budget=3 * 16 * 8 * 4)  # 16 bytes for every number that 8 players bring to 4 classes
    together, worth = [], influence.Influence.worth

    def watched(self: influence.Influence, members: Tensor, budget: int) -> Tensor:
        together.append(members.shape[1])
        return worth(self, members, budget)

    monkeypatch.setattr(influence.Influence, "worth", watched)
    game(some(game, 8))
    assert together == [3, 3, 2]


def test_the_size_of_tiles_does_not_change_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    game = ring_game()
    members = some(game)
    worth, change = game(members), game.marginals(members)
    monkeypatch.setattr(dense_influence, "CPU_COLUMNS", 3)
    monkeypatch.setattr(information, "COALITIONS_AT_ONCE", 2)
    monkeypatch.setattr(influence, "CPU_TILE", 50)
    assert torch.allclose(game(members), worth, atol=1e-9)
    assert torch.allclose(game.marginals(members), change, atol=1e-7)


@pytest.mark.parametrize("ask", ["__call__", "marginals", "gradient"])
def test_a_game_that_runs_out_of_memory_goes_on_in_smaller_pieces(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were room for pieces of 100,000 bytes only."""
    game = ring_game()
    members = some(game)
    answer, tried, real = getattr(game, ask)(members), [], Information._signal.func  # type: ignore[attr-defined]

    def out_of_memory(self: Information) -> Tensor:
        tried.append(self.budget)
        if self.budget > 100_000:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        signal: Tensor = real(self)
        return signal

    monkeypatch.setattr(Information, "_signal", property(out_of_memory))
    again = getattr(ring_game(), ask)(members)
    assert tried[:14] == [2**29 // 2**halved for halved in range(14)]
    assert set(tried[13:]) == {2**16}
    torch.testing.assert_close(again, answer, atol=1e-7, rtol=1e-5)


def test_a_game_without_any_memory_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information.Influence, "worth", lambda *_: torch.empty(2**60))
    with pytest.raises(OutOfMemory, match=r"game of 8 candidates on 66 nodes.*Banzhaf\.budget.*lower candidates"):
        ring_game()(some(ring_game()))


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information.Influence, "worth", lambda *_: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        ring_game()(some(ring_game()))
    assert ran_out_of_memory(MemoryError())
    assert not ran_out_of_memory(ValueError("out of memory"))


def test_only_reached_nodes_are_evaluated_and_the_others_still_count() -> None:
    game = ring_game(runs=1, players=2)
    reached = game._influence(slice(0, 1)).columns
    assert 0 < len(reached) < int(game.open.sum())
    members = some(game, 3, 1)
    assert torch.allclose(game(members), plain(game)(members), atol=1e-6)
    flips = banzhaf.marginals(plain(game), members)
    assert torch.allclose(replace(game, tolerance=0).marginals(members).double(), flips, atol=1e-6)


def test_a_class_that_hardly_anyone_is_of_counts_like_any_other() -> None:
    """Its mean probability is a thousandth, which no bound for the sake of a logarithm may raise."""
    random = torch.Generator().manual_seed(2)
    known = torch.arange(12)[None] >= 4
    logits = torch.randn(1, 12, 3, generator=random) - torch.tensor([0.0, 0.0, 7.0])
    operator = Matrix(torch.rand(12, 12, generator=random).pow(4).softmax(1))
    everyone = torch.ones_like(known)
    game = Information.of(operator, logits, known, torch.arange(4)[None], open=everyone, tolerance=0)
    members = some(game, 4, 3)
    assert torch.allclose(game.marginals(members).double(), banzhaf.marginals(plain(game), members), atol=1e-6)


def test_isolated_players_influence_only_themselves() -> None:
    """Isolated nodes reach themselves alone."""
    random = torch.Generator().manual_seed(1)
    known = torch.zeros(1, 20, dtype=torch.bool)
    known[0, :3] = True
    graph = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=20)
    logits = torch.randn(1, 20, 3, generator=random)
    game = Information.of(PPR()(graph), logits, known, torch.arange(5, 9)[None], tolerance=0)
    members = some(game, 4, 2)
    assert len(game._influence(slice(0, 1)).columns) == 4
    assert torch.allclose(game.marginals(members).double(), banzhaf.marginals(plain(game), members), atol=1e-6)


def test_players_who_reach_no_open_node_are_worth_nothing() -> None:
    graph = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=6)
    known = torch.zeros(1, 6, dtype=torch.bool)
    open = torch.zeros(1, 6, dtype=torch.bool)
    open[0, :2] = True
    logits = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(1))
    game = Information.of(PPR()(graph), logits, known, torch.tensor([[3, 4]]), open=open)
    for name in ("exact", "marginals", "gradient", "meanfield", "wls"):
        assert banzhaf.ESTIMATORS[name](30)(game, 2, generators(0)).mean.abs().max() < 1e-6


def test_a_run_alone_equals_the_run_in_a_batch() -> None:
    game = ring_game(runs=3)
    members = some(game)
    alone = Information.of(game.operator, game.logits[1:2], game.known[1:2], game.nodes[1:2])
    assert torch.equal(game(members)[1:2], alone(members[1:2]))
    assert torch.equal(game.marginals(members)[1:2], alone.marginals(members[1:2]))
    assert torch.allclose(game.gradient(members)[1:2], alone.gradient(members[1:2]), atol=1e-7)


def test_logits_of_any_size_have_finite_values() -> None:
    for scale in (0.0, 1e-6, 1e4):
        game = ring_game()
        game = Information.of(game.operator, scale * game.logits, game.known, game.nodes)
        members = some(game)
        for outcome in (game(members), game.marginals(members), game.gradient(members)):
            assert torch.isfinite(outcome).all()
        assert (game(members) > -1e-6).all()


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_the_default_finds_the_exact_values(normalise: Normalisation) -> None:
    game = ring_game(runs=1, normalise=normalise, tolerance=0.05)
    exact = Exact()(plain(game), 4).mean
    assert torch.allclose(Marginals(2000)(game, 4, generators(1)).mean, exact, atol=0.02 * float(exact.abs().max()))


def test_the_mean_field_ranks_the_players() -> None:
    game = ring_game(runs=1, players=10)
    exact = Exact()(plain(game), 5).mean[0]
    guess = MeanField()(game, 5).mean[0]
    assert float(torch.corrcoef(torch.stack([exact, guess]))[0, 1]) > 0.95


def test_the_closed_form_of_propagation_serves_as_well() -> None:
    graph = ring(30)
    game = ring_game(nodes=24)
    game = replace(game, operator=ExactPPR()(graph))
    members = some(game)
    assert torch.allclose(game(members), plain(game)(members), atol=1e-6)


def test_bad_games_are_named() -> None:
    game = ring_game(runs=2)
    with pytest.raises(InvalidInput, match="no players"):
        Information.of(game.operator, game.logits, game.known, game.nodes[:, :0])
    with pytest.raises(InvalidInput, match="run 0 has no open node"):
        Information.of(game.operator, game.logits, torch.ones_like(game.known), game.nodes)
    known = game.known.clone()
    known[1, game.nodes[1, 0]] = True
    with pytest.raises(InvalidInput, match="run 1 has a player that is already known"):
        Information.of(game.operator, game.logits, known, game.nodes)
    with pytest.raises(InvalidInput, match="tolerance"):
        Information.of(game.operator, game.logits, game.known, game.nodes, tolerance=-1)


@pytest.mark.gpu
def test_a_gpu_finds_the_same_values() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    game = ring_game()
    on_gpu = Information.of(
        PPR(steps=4)(ring(60, isolated=6).to("cuda")), game.logits.cuda(), game.known.cuda(), game.nodes.cuda()
    )
    members = some(game)
    assert torch.allclose(game(members), on_gpu(members.cuda()).cpu(), atol=1e-6)
    assert torch.allclose(game.marginals(members), on_gpu.marginals(members.cuda()).cpu(), atol=1e-6)
    assert torch.allclose(game.gradient(members), on_gpu.gradient(members.cuda()).cpu(), atol=1e-6)
    on_device = [torch.Generator("cuda").manual_seed(seed) for seed in (1, 2)]
    assert Marginals(40)(on_gpu, 5, on_device).mean.shape == (2, 8)
