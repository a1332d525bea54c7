"""Personalised PageRank: the power iteration equals the closed form, and both equal results by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.pagerank import PPR, ExactPPR, Propagator
from tests.conftest import two_rings


def random_graph(nodes: int, seed: int, directed: bool = False) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
    return Data(edge_index=edges if directed else torch.cat([edges, edges.flip(0)], dim=1), num_nodes=nodes)


def test_one_step_on_two_nodes_is_known_on_paper() -> None:
    pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    # (1 − α) ½ (x₀ + x₁) + α x
    spread = PPR(alpha=0.5, steps=1)(pair)(torch.tensor([[4.0], [0.0]]))
    torch.testing.assert_close(spread, torch.tensor([[3.0], [1.0]]))


def test_the_closed_form_on_two_nodes_is_known_on_paper() -> None:
    pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    # ½ (I − ½ · ½ 11ᵀ)⁻¹ = ½ (I + ½ 11ᵀ)
    torch.testing.assert_close(ExactPPR(alpha=0.5)(pair)(torch.eye(2)), torch.tensor([[0.75, 0.25], [0.25, 0.75]]))


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 15), st.integers(0, 1000), st.floats(0.05, 1.0), st.booleans(), st.booleans())
def test_many_steps_reach_the_closed_form(nodes: int, seed: int, alpha: float, symmetric: bool, directed: bool) -> None:
    # with the symmetric normalisation of a directed graph the walk may grow, so that no limit is promised
    graph = random_graph(nodes, seed, directed and not symmetric)
    fast, exact = PPR(alpha, 400, symmetric)(graph), ExactPPR(alpha, symmetric)(graph)
    x = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(seed))
    chosen = torch.tensor([nodes - 1, 0])
    torch.testing.assert_close(fast(x), exact(x), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(fast.adjoint(x), exact.adjoint(x), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(fast.columns(chosen), exact.columns(chosen), atol=1e-4, rtol=1e-4)


def test_ten_steps_miss_no_more_than_the_mass_left() -> None:
    graph = two_rings()
    missed = (PPR(0.15, 10)(graph)(torch.eye(24)) - ExactPPR(0.15)(graph)(torch.eye(24))).abs().sum(1) / 2
    assert missed.max() <= 0.85**10


@pytest.mark.parametrize("part", [PPR(), PPR(steps=1), PPR(symmetric=True), ExactPPR(), ExactPPR(symmetric=True)])
class TestEveryOperator:
    def test_the_adjoint_moves_to_the_other_side_of_a_product(self, part: Propagator) -> None:
        operator = part(random_graph(9, 1, directed=True))
        x, y = torch.randn(9, 2), torch.randn(9, 2)
        torch.testing.assert_close((operator(x) * y).sum(), (x * operator.adjoint(y)).sum())

    def test_columns_are_those_of_the_whole_matrix(self, part: Propagator) -> None:
        operator = part(two_rings())
        nodes = torch.tensor([3, 0, 17])
        torch.testing.assert_close(operator.columns(nodes), operator(torch.eye(24))[:, nodes])
        assert operator.columns(torch.tensor([], dtype=torch.long)).shape == (24, 0)

    def test_the_argument_is_left_alone(self, part: Propagator) -> None:
        x = torch.randn(24, 3)
        before = x.clone()
        operator = part(two_rings())
        operator(x)
        operator.adjoint(x)
        assert torch.equal(x, before)

    def test_the_operator_is_linear(self, part: Propagator) -> None:
        operator = part(two_rings())
        x, y = torch.randn(24, 3), torch.randn(24, 3)
        torch.testing.assert_close(operator(2 * x - y), 2 * operator(x) - operator(y))

    def test_a_transposed_view_is_propagated_like_its_copy(self, part: Propagator) -> None:
        operator = part(two_rings())
        x = torch.randn(3, 24)
        torch.testing.assert_close(operator(x.T), operator(x.T.contiguous()))


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_rows_sum_to_one_at_any_number_of_steps(steps: int) -> None:
    ones = torch.ones(24, 1)
    torch.testing.assert_close(PPR(steps=steps)(two_rings())(ones), ones)


def test_alpha_one_changes_nothing() -> None:
    x = torch.randn(24, 3)
    torch.testing.assert_close(PPR(alpha=1.0)(two_rings())(x), x)


def test_an_isolated_node_keeps_what_it_has() -> None:
    graph = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    assert PPR()(graph)(torch.tensor([[0.0], [0.0], [5.0]]))[2].item() == pytest.approx(5)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.01, float("nan")])
@pytest.mark.parametrize("part", [PPR, ExactPPR])
def test_alpha_outside_its_range_is_refused(part: type, alpha: float) -> None:
    with pytest.raises(InvalidInput, match=r"alpha must lie in \(0, 1\]"):
        part(alpha=alpha)


def test_no_steps_are_refused() -> None:
    with pytest.raises(InvalidInput, match="steps must be at least 1, got 0"):
        PPR(steps=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_device_is_the_graphs() -> None:
    graph, x = two_rings(), torch.randn(24, 3)
    moved = PPR()(graph.clone().to("cuda"))
    assert moved.columns(torch.tensor([1])).is_cuda
    torch.testing.assert_close(moved(x.cuda()).cpu(), PPR()(graph)(x))
    torch.testing.assert_close(moved.adjoint(x.cuda()).cpu(), PPR()(graph).adjoint(x))
