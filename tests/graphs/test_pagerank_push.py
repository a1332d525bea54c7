"""Push: columns agree with the closed form within their error bound, products with the power iteration."""

import logging
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs import pagerank, pagerank_push
from bangs.graphs.neighbours import NeighbourLists
from bangs.graphs.pagerank import PPR, ExactPPR
from bangs.graphs.pagerank_push import Push, PushOperator


def random_graph(nodes: int, seed: int, directed: bool = False, weighted: bool = False) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
    graph = Data(edge_index=edges if directed else torch.cat([edges, edges.flip(0)], dim=1), num_nodes=nodes)
    if weighted:
        graph.edge_weight = 3 * torch.rand(graph.edge_index.shape[1], generator=generator)
    return graph


def test_two_levels_on_a_pair_are_known_on_paper() -> None:
    pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    # x₀ = (1, 0) settles at ½ and hands ½ · ½ to each; at level 1 each settles all of its ¼
    torch.testing.assert_close(Push(0.5, 1, 0.0)(pair).columns(torch.tensor([0])), torch.tensor([[0.75], [0.25]]))
    # with the threshold at ¼ nothing is pushed on from level 1, and the bound says so
    coarse = Push(0.5, 2, 0.5)(pair).pairs(torch.tensor([0]))
    assert coarse.weight.tolist() == [0.75, 0.25]
    assert coarse.bound == 0.25


@settings(max_examples=15, deadline=None)
@given(
    st.integers(2, 25),
    st.integers(0, 1000),
    st.floats(0.05, 1.0),
    st.integers(1, 30),
    st.sampled_from([0.0, 1e-3, 1e-2, 0.1]),
    st.booleans(),
    st.booleans(),
)
def test_every_entry_is_within_the_bound_of_the_closed_form(
    nodes: int, seed: int, alpha: float, steps: int, error: float, directed: bool, weighted: bool
) -> None:
    graph = random_graph(nodes, seed, directed, weighted)
    chosen = torch.arange(nodes)
    operator = Push(alpha, steps, error)(graph)
    pairs = operator.pairs(chosen)
    assert pairs.bound <= error
    steps_only = (operator.columns(chosen) - PPR(alpha, steps)(graph).columns(chosen)).abs().max()
    assert steps_only <= pairs.bound + 1e-6
    exact = (operator.columns(chosen) - ExactPPR(alpha)(graph).columns(chosen)).abs().max()
    assert exact <= pairs.bound + (1 - alpha) ** steps + 1e-6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_products_are_those_of_the_power_iteration_block_by_block(
    directed: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(50, 3, directed, weighted)
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    before = x.clone()
    for block in (pagerank_push.BLOCK_SIZE, 7):
        monkeypatch.setattr(pagerank_push, "BLOCK_SIZE", block)
        slow, fast = PPR()(graph), Push(error=0.0)(graph)
        torch.testing.assert_close(fast(x), slow(x))
        torch.testing.assert_close(fast.adjoint(x), slow.adjoint(x))
        torch.testing.assert_close(fast.columns(torch.tensor([4, 9])), slow.columns(torch.tensor([4, 9])))
    assert torch.equal(x, before)


def test_mass_is_kept_whatever_the_threshold() -> None:
    """On a regular graph columns of P sum to one, as rows do."""
    ring = torch.arange(200)
    edges = torch.stack([ring, (ring + 1) % 200])
    graph = Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=200)
    for error in (0.0, 1e-3, 0.1, 0.9):
        torch.testing.assert_close(Push(error=error)(graph).columns(ring).sum(0), torch.ones(200))


def test_columns_with_too_many_entries_get_a_larger_error_bound_which_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    graph = random_graph(300, 1)
    nodes = torch.arange(20)
    operator = Push(error=1e-4)(graph)
    fine = operator.pairs(nodes)
    with caplog.at_level(logging.INFO, "bangs.graphs.pagerank_push"):
        coarse = operator.pairs(nodes, max_entries=len(fine.node) // 3)
    assert len(coarse.node) <= len(fine.node) // 3
    assert coarse.bound > fine.bound
    assert "a larger budget allows more" in caplog.text
    whole = torch.zeros(300, 20)
    whole[coarse.node, coarse.player] = coarse.weight
    assert (whole - PPR()(graph).columns(nodes)).abs().max() <= coarse.bound + 1e-6


@pytest.mark.parametrize("devices", [{"cpu"}, set()], ids=["pairs", "whole columns"])
def test_the_bound_of_several_columns_is_the_largest_of_theirs(
    devices: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagerank_push, "SPARSE_DEVICES", devices)
    monkeypatch.setattr(pagerank_push, "BLOCK_SIZE", 1)  # each by itself
    operator = Push(steps=4, error=0.05)(random_graph(12, 1, directed=True))
    bounds = [operator.pairs(torch.tensor([node])).bound for node in range(12)]
    assert len(set(bounds)) > 1
    for nodes in (torch.arange(12), torch.arange(12).flip(0)):
        assert operator.pairs(nodes).bound == pytest.approx(max(bounds))


def test_a_threshold_rises_fourfold_and_from_zero_to_a_small_number() -> None:
    assert pagerank_push.raised_threshold(1e-5) == pytest.approx(4e-5)
    assert pagerank_push.raised_threshold(0.0) == pytest.approx(4e-9)


def test_a_large_graph_uses_push_which_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pagerank, "MAX_POWER_ITERATION_NODES", 10)
    with caplog.at_level(logging.INFO, "bangs.graphs.pagerank"):
        operator = PPR(0.2, 7)(random_graph(11, 0))
    assert isinstance(operator, PushOperator)
    assert (operator.alpha, operator.steps) == (0.2, 7)
    assert "the graph is large, so columns are computed by" in caplog.text
    assert not isinstance(PPR()(random_graph(10, 0)), PushOperator)
    with pytest.raises(InvalidInput, match=r"PPR\.symmetric works for graphs in memory"):
        PPR(symmetric=True)(random_graph(11, 0))


def test_bad_settings_are_named() -> None:
    wrong = [("alpha", 0.0), ("alpha", 1.1), ("steps", 0), ("error", -1.0), ("error", 1.0)]
    for message, settings_ in ((name, {name: value}) for name, value in wrong):
        with pytest.raises(InvalidInput, match=f"Push.{message} must"):
            Push(**settings_)  # type: ignore[arg-type]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("error", [0.0, 1e-3, 1e-2])
def test_whole_columns_as_a_gpu_pushes_them_are_the_pushed_ones(
    directed: bool, weighted: bool, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, nodes = random_graph(80, 5, directed, weighted), torch.arange(0, 80, 3)
    few = Push(error=error)(graph).pairs(nodes)
    monkeypatch.setattr(pagerank_push, "SPARSE_DEVICES", set())
    for block in (pagerank_push.BLOCK_SIZE, 4 * 80):
        monkeypatch.setattr(pagerank_push, "BLOCK_SIZE", block)  # all columns at once, or four
        whole = Push(error=error)(graph).pairs(nodes)
        assert torch.equal(whole.node, few.node)
        assert torch.equal(whole.player, few.player)
        torch.testing.assert_close(whole.weight, few.weight)
        assert whole.bound <= few.bound + 1e-7  # a column's own misses add up, not the largest of all columns


def test_dense_columns_respect_the_bound_on_entries_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, nodes = random_graph(300, 1), torch.arange(20)
    few = Push(error=1e-4)(graph).pairs(nodes, max_entries=1500)
    monkeypatch.setattr(pagerank_push, "SPARSE_DEVICES", set())
    operator, widths, real = Push(error=1e-4)(graph), [], pagerank_push.push_dense

    def watched(hop: Any, start: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        widths.append(start.shape[1])
        return real(hop, start, *rest)

    monkeypatch.setattr(pagerank_push, "push_dense", watched)
    whole = operator.pairs(nodes, max_entries=1500)
    assert len(few.node) == len(whole.node) <= 1500
    assert torch.equal(few.node, whole.node)
    assert max(widths) == 1500 * pagerank_push.DENSE_RATIO // 300
    assert whole.bound <= few.bound + 1e-7
    assert (operator.columns(nodes) - PPR()(graph).columns(nodes)).abs().max() <= 1e-4 + 1e-6
    nobody = operator.push(nodes[:0], 1e-5, 1500)  # as a rank without candidates of its own asks
    assert nobody is not None
    assert len(nobody.node) == len(nobody.weight) == 0


@pytest.mark.gpu
def test_a_gpu_finds_the_pairs_that_a_processor_finds() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    graph, nodes = random_graph(3000, 2, directed=True, weighted=True), torch.arange(0, 3000, 100)
    here, there = Push(error=1e-3)(graph), Push(error=1e-3)(graph.clone().to("cuda"))
    for max_entries in (None, 5000):
        few, whole = here.pairs(nodes, max_entries), there.pairs(nodes.cuda(), max_entries)
        assert torch.equal(whole.node, few.node)
        assert torch.equal(whole.player, few.player)
        torch.testing.assert_close(whole.weight, few.weight)
    x = torch.randn(3000, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(there(x.cuda()).cpu(), here(x))
    torch.testing.assert_close(there.adjoint(x.cuda()).cpu(), here.adjoint(x))


def test_an_edge_that_leads_to_no_node_is_refused_by_the_columns_too() -> None:
    lists = NeighbourLists(torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, -3], dtype=torch.int32))
    with pytest.raises(InvalidInput, match="has an end that is not a node"):
        PushOperator(lists, lists, 0.15, 3, 1e-4).pairs(torch.tensor([0]))


def test_a_product_with_a_damaged_store_is_refused_and_does_not_crash() -> None:
    for pointers, node, sentence in (
        ([0, 1, 2, 3], 2 * 10**9, "has an end that is not a node"),
        ([0, 3, 1, 3], 2, "decrease"),
    ):
        lists = NeighbourLists(torch.tensor(pointers), torch.tensor([1, node, 0], dtype=torch.int32))
        with pytest.raises(InvalidInput, match=sentence):
            PushOperator(lists, lists, 0.15, 3, 1e-4)(torch.ones(3, 2))
