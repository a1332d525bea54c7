"""A view changes what it should and leaves the given graph unchanged."""

import pytest
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.augmentations import DropEdges, DropFeatures, Noise, Same, View
from tests.conftest import two_rings

VIEWS = [Same(), DropFeatures(0.3), DropEdges(0.3), Noise(0.3)]


def sparse_rings() -> Data:
    graph = two_rings()
    graph.x = graph.x.to_sparse_csr()
    return graph


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [two_rings, sparse_rings])
def test_the_graph_given_is_left_alone(view: View, make: object) -> None:
    assert callable(make)
    graph = make()
    features, edges = graph.x.clone().to_dense(), graph.edge_index.clone()
    changed = view(graph, generator())
    assert torch.equal(graph.x.to_dense(), features)
    assert torch.equal(graph.edge_index, edges)
    assert changed.num_nodes == 24
    assert changed.x.shape == (24, 2)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_a_function_of_its_random_stream(view: View) -> None:
    first, second = view(two_rings(), generator(3)), view(two_rings(), generator(3))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.edge_index, second.edge_index)


@pytest.mark.parametrize("view", [DropFeatures(0), DropEdges(0), Noise(0)])
def test_a_rate_of_zero_changes_nothing(view: View) -> None:
    graph = two_rings()
    changed = view(graph, generator())
    assert torch.equal(changed.x, graph.x)
    assert torch.equal(changed.edge_index, graph.edge_index)


def test_the_same_view_is_the_graph() -> None:
    graph = two_rings()
    assert Same()(graph, generator()) is graph


def test_kept_features_grow_so_that_the_mean_stays() -> None:
    graph = Data(x=torch.ones(1000, 50), edge_index=torch.empty(2, 0, dtype=torch.long))
    x = DropFeatures(0.2)(graph, generator()).x
    assert sorted(x.unique().tolist()) == pytest.approx([0, 1.25])
    assert x.mean().item() == pytest.approx(1, abs=0.01)


def test_sparse_features_stay_sparse_and_zeros_stay_zero() -> None:
    graph = sparse_rings()
    x = DropFeatures(0.5)(graph, generator()).x
    assert x.layout == torch.sparse_csr
    kept = x.to_dense() != 0
    torch.testing.assert_close(x.to_dense()[kept], 2 * graph.x.to_dense()[kept])
    assert 0 < kept.sum() < 48


def test_edges_go_in_both_directions_together() -> None:
    graph = two_rings()
    graph.edge_weight = torch.arange(graph.num_edges, dtype=torch.float)
    changed = DropEdges(0.4)(graph, generator())
    pairs = {tuple(pair) for pair in changed.edge_index.T.tolist()}
    assert pairs == {(b, a) for a, b in pairs}
    undirected = len({tuple(sorted(pair)) for pair in graph.edge_index.T.tolist()})
    assert len({tuple(sorted(pair)) for pair in pairs}) == undirected - round(0.4 * undirected)
    kept = changed.edge_weight.long()
    assert torch.equal(graph.edge_index[:, kept], changed.edge_index)


def test_noise_is_at_most_half_the_rate_times_the_spread_of_its_column() -> None:
    graph = two_rings()
    graph.x = torch.cat([graph.x, torch.ones(24, 1)], dim=1)
    change = Noise(0.2)(graph, generator()).x - graph.x
    assert (change >= 0).all()
    assert (change <= 0.1 * graph.x.std(dim=0) + 1e-6).all()
    assert change[:, :2].min(dim=0).values.max() > 0
    assert change[:, 2].abs().max() == 0


def test_noise_makes_sparse_features_dense() -> None:
    x = Noise(0.1)(sparse_rings(), generator()).x
    assert x.layout == torch.strided
    torch.testing.assert_close(x, Noise(0.1)(two_rings(), generator()).x)


def test_noise_on_a_single_node_is_none() -> None:
    graph = Data(x=torch.ones(1, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert torch.equal(Noise(0.5)(graph, generator()).x, graph.x)


@pytest.mark.parametrize("part", [DropFeatures, DropEdges, Noise])
@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_outside_its_range_is_refused(part: type, rate: float) -> None:
    with pytest.raises(InvalidInput, match=r"rate must lie in \[0, 1\)"):
        part(rate)
    with pytest.raises(InvalidInput, match="rate must be a number, got 'half'"):
        part("half")
