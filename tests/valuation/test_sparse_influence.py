"""Valuation on large graphs: sparse columns choose as dense ones do, and sampled nodes represent all."""

import functools
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from bangs.graphs.datasets import synthetic
from bangs.graphs.pagerank import PPR, Operator
from bangs.graphs.pagerank_push import Pairs, Push, PushOperator
from bangs.valuation import coalitions, sparse_influence
from bangs.valuation.banzhaf import Marginals, MeanField
from bangs.valuation.dense_influence import DenseColumns
from bangs.valuation.influence import Influence, Normalisation
from bangs.valuation.information import Information
from bangs.valuation.sparse_influence import SparseColumns

GRAPH = synthetic.citation(nodes=600, classes=4, features=16, mean_degree=5.0, seed=3)


def citation_game(
    operator: Operator, normalise: Normalisation = "none", budget: int = 2**29, seed: int = 0
) -> Information:
    """30 players on a small citation network, 40 of whose nodes are known."""
    random = torch.Generator().manual_seed(1)
    logits = 2 * torch.nn.functional.one_hot(GRAPH.y, 4) + torch.randn(600, 4, generator=random)
    order = torch.randperm(600, generator=random)
    known = torch.zeros(1, 600, dtype=torch.bool)
    known[0, order[:40]] = True
    return Information.of(
        operator, logits[None], known, order[None, 40:70], normalise=normalise, budget=budget, seeds=(seed,)
    )


def some(game: Information, count: int = 5) -> Tensor:
    return coalitions.draw(game.players, 15, count, [torch.Generator().manual_seed(2)])


def test_sparse_columns_do_what_dense_ones_do() -> None:
    random = torch.Generator().manual_seed(0)
    matrix = torch.rand(9, 5, generator=random) * (torch.rand(9, 5, generator=random) < 0.4)
    node, player = matrix.nonzero().T
    dense, sparse = DenseColumns(matrix[None]), SparseColumns.of(node, player, matrix[node, player], (9, 5))
    x, y = torch.randn(1, 9, 3, generator=random), torch.randn(1, 5, 3, generator=random)
    assert len(dense) == len(sparse) == 9
    torch.testing.assert_close(sparse.matmul_transposed(x), dense.matmul_transposed(x))
    torch.testing.assert_close(sparse.sums(), dense.sums())
    for rows in (slice(None), slice(2, 7), slice(8, 20), slice(0, 0)):
        torch.testing.assert_close(sparse.matmul(y, rows), dense.matmul(y, rows))
    for bound in (torch.rand(1, 1, 5, generator=random), torch.rand(1, 9, 1, generator=random)):
        for one, other in zip(sparse.pairs_above(bound), dense.pairs_above(bound), strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_without_error_a_pushed_game_is_the_game(normalise: Normalisation) -> None:
    slow, fast = citation_game(PPR()(GRAPH), normalise), citation_game(Push(error=0.0)(GRAPH), normalise)
    members = some(slow)
    torch.testing.assert_close(fast(members), slow(members), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(fast.marginals(members), slow.marginals(members), atol=1e-6, rtol=1e-3)
    torch.testing.assert_close(fast.gradient(members), slow.gradient(members), atol=1e-7, rtol=1e-3)
    assert fast._influence(slice(0, 1)).weight is None


def test_worth_moves_by_no_more_than_the_bound_allows() -> None:
    """|∂U/∂h_jc| ≤ p_jc |log p_jc/p̄_c − KL| / N ≤ log(1 / min p̄) / N, below 3 / N while a class has 5 % of the mean."""
    slow = citation_game(PPR()(GRAPH))
    members = some(slow)
    for error in (1e-4, 1e-3, 1e-2):
        fast = citation_game(Push(error=error)(GRAPH))
        bound = fast.operator.pairs(fast.nodes[0]).bound  # type: ignore[attr-defined]
        brought = float(fast.logits[0, fast.nodes[0]].abs().sum())
        assert float((fast(members) - slow(members)).abs().max()) <= 3 * bound * brought


@pytest.mark.parametrize("estimate", [Marginals(16), MeanField()])
def test_the_same_nodes_are_chosen(estimate: Marginals | MeanField) -> None:
    slow, fast = (
        estimate(citation_game(operator), 15, [torch.Generator().manual_seed(5)]).mean[0]
        for operator in (PPR()(GRAPH), Push(error=1e-4)(GRAPH))
    )
    assert set(slow.topk(10).indices.tolist()) == set(fast.topk(10).indices.tolist())
    assert float((slow - fast).abs().max()) < 0.01 * float(slow.abs().max())


@dataclass(frozen=True, eq=False)
class Pushed:
    """An operator that has pushed its columns."""

    operator: PushOperator
    found: Pairs

    def __call__(self, x: Tensor) -> Tensor:
        return self.operator(x)

    def adjoint(self, x: Tensor) -> Tensor:
        return self.operator.adjoint(x)

    def columns(self, nodes: Tensor) -> Tensor:
        return self.operator.columns(nodes)

    def pairs(self, nodes: Tensor, max_entries: int) -> Pairs:
        return self.found


@functools.cache
def pushed() -> Pushed:
    operator = Push(error=1e-3)(GRAPH)
    return Pushed(operator, operator.pairs(citation_game(operator).nodes[0]))


def sampled(seed: int) -> Information:
    """The game with room for 200 reached nodes."""
    return citation_game(pushed(), budget=200 * 4 * sparse_influence.ROW_BYTES, seed=seed)


def test_a_sample_represents_the_nodes_that_no_player_moves() -> None:
    game = sampled(0)
    reach, whole = game._influence(slice(0, 1)), replace(game, budget=2**29)._influence(slice(0, 1))
    assert whole.weight is None
    assert reach.weight is not None
    assert len(reach.columns) < len(whole.columns)
    assert float(reach.weight.sum()) == pytest.approx(len(whole.columns))
    near = reach.strong_pairs(game.tolerance)
    assert len(near.node) == len(whole.strong_pairs(game.tolerance).node) > 0
    assert bool((reach.weight[0, near.node] == 1).all())


def test_the_sample_has_at_least_half_of_the_nodes_however_many_are_moved() -> None:
    game = replace(sampled(0), budget=40 * 4 * sparse_influence.ROW_BYTES)
    weight = game._influence(slice(0, 1)).weight
    assert weight is not None
    assert int((weight == 1).sum()) == 40  # the strongly moved nodes alone are as many as `max_nodes`
    assert int((weight > 1).sum()) == 20


def stderr(influence: Influence, members: Tensor) -> Tensor:
    """The standard error of `worth` from sampled nodes, for coalitions [g, b, K]: float64 [g, b].

    To first order U is mean_j KL(p_j ‖ p̄), a mean over F nodes of which m are sampled without replacement.
    """
    assert influence.weight is not None
    drawn = (influence.weight > 1)[..., None]
    divergence = influence._forecast(members).divergence.double()
    m, F = drawn.sum(1), (influence.weight.double()[..., None] * drawn).sum(1)
    gap = (divergence - (divergence * drawn).sum(1, keepdim=True) / m[:, None]) * drawn
    variance = gap.square().sum(1) / (m - 1)
    return F / influence.count[:, None] * ((1 - m / F) / m * variance).sqrt()


def test_the_standard_error_of_a_sample_by_hand() -> None:
    """Of four nodes two are drawn, which make a half of the total certain: 4/5 √((1 − 2/4) / 2 · s²)."""
    base = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, -1.0]])
    weight, nothing = torch.tensor([1.0, 2.0, 2.0]), torch.zeros(1, dtype=torch.float64)
    influence = Influence(
        columns=DenseColumns(torch.zeros(1, 3, 1)),
        base=base[:, None],
        player_signals=torch.zeros(1, 1, 2),
        total=nothing.expand(2, 1),
        neg_entropy=nothing,
        count=torch.tensor([5]),
        normalise="none",
        weight=weight[None],
    )
    p = base.double().softmax(0)
    mean = (p * weight).sum(1) / 5
    divergence = (p * (p / mean[:, None]).log()).sum(0)[1:]
    expected = 4 / 5 * float((0.25 * divergence.var()).sqrt())
    assert float(stderr(influence, torch.zeros(1, 1, 1, dtype=torch.bool))) == pytest.approx(expected, rel=1e-5)


def test_the_same_seed_draws_the_same_nodes() -> None:
    members = some(sampled(0))
    assert torch.equal(sampled(0)(members), sampled(0)(members))
    assert not torch.equal(sampled(0)(members), sampled(1)(members))


def test_sampled_worths_scatter_about_the_whole_as_their_standard_error_says() -> None:
    members = some(sampled(0), 3)
    whole = replace(sampled(0), budget=2**29)(members)
    games = [sampled(seed) for seed in range(60)]
    error = torch.stack([game(members) - whole for game in games])[:, 0]
    divergence = torch.stack([stderr(game._influence(slice(0, 1)), members) for game in games])[:, 0]
    assert bool((divergence > 0).all())
    # 60 draws: the mean of the errors is within 3 of its standard errors, and they spread as divergence within a third
    assert bool((error.mean(0).abs() < 3 * divergence.mean(0) / 60**0.5).all())
    assert torch.allclose(error.std(0), divergence.mean(0), rtol=0.33)


def test_sampled_marginals_are_right_on_average() -> None:
    members = some(sampled(0), 2)
    whole = replace(sampled(0), budget=2**29).marginals(members)
    actual = torch.stack([sampled(seed).marginals(members) for seed in range(60)])
    off = (actual.mean(0) - whole).abs() / (actual.std(0) / 60**0.5).clamp(min=1e-8)
    assert float(off.median()) < 1.2  # a normal deviate's median is 0.67
    assert float(off.max()) < 5
