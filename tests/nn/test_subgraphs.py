"""A subgraph gives the same products as dense matrices of the whole graph."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.graphs.sparse import adjacency, to_torch
from bangs.nn.subgraphs import Features, PreparedGraph, Subgraph, per_run_subgraph
from tests.conftest import masks, two_rings

CPU = torch.device("cpu")


def random_features(nodes: int, width: int, density: float, seed: int = 0) -> sp.csr_array:
    return sp.random_array((nodes, width), density=density, format="csr", rng=seed, dtype=np.float32)


@pytest.mark.parametrize("density", [0.05, 0.24, 0.26, 1.0])
@pytest.mark.parametrize("runs", [1, 3])
def test_sparse_features_multiply_like_dense_ones(density, runs):
    x = random_features(12, 9, density)
    weight = torch.randn(runs, 9, 4)
    dense = Features.of(torch.as_tensor(x.toarray()), runs, CPU)
    stored = Features.of(x, runs, CPU)
    torch.testing.assert_close(stored.matmul(weight).expand(runs, -1, -1), dense.matmul(weight))
    torch.testing.assert_close(stored.dense().expand(runs, -1, -1), dense.dense().expand(runs, -1, -1))


def test_features_that_are_hardly_sparse_are_kept_dense():
    assert isinstance(Features.of(random_features(10, 10, 0.5), 2, CPU).stored, torch.Tensor)
    assert not isinstance(Features.of(random_features(10, 10, 0.1), 2, CPU).stored, torch.Tensor)


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_dropout_on_features_zeroes_and_scales(density):
    x = random_features(40, 30, density)
    dropped = Features.of(x, 2, CPU).drop(masks(1, 2), 0.5).dense()
    full = torch.as_tensor(x.toarray()).expand(2, -1, -1)
    nonzero = dropped != 0
    torch.testing.assert_close(dropped[nonzero], 2 * full[nonzero])
    assert not torch.equal(dropped[0], dropped[1])
    assert nonzero.sum().item() == pytest.approx(x.nnz, rel=0.25)


def test_no_noise_is_no_dropout():
    features = Features.of(random_features(5, 5, 0.1), 1, CPU)
    assert features.drop(None, 0.5) is features
    assert features.drop(masks(1), 0.0) is features


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("hops", [0, 1, 2, 5])
@pytest.mark.parametrize("nodes", [[0], [3, 4, 17], list(range(24))])
def test_hops_of_a_part_give_the_rows_of_dense_matrix_powers(runs, hops, nodes):
    graph = two_rings()
    subgraph = PreparedGraph.of(graph, runs, 1.0, "row").k_hop_subgraph(np.array(nodes), hops)
    h = subgraph.features.dense().expand(runs, -1, -1)
    for hop in range(hops):
        h = subgraph.propagate(hop, h)
    power = np.linalg.matrix_power(adjacency(graph, 1.0, "row").toarray(), hops)
    expected = torch.as_tensor(power)[nodes] @ graph.x
    torch.testing.assert_close(h, expected.expand(runs, -1, -1))


def test_a_part_is_no_larger_than_its_hops_reach():
    """On a ring of 12, two hops from one node reach five nodes."""
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    graph = Data(x=torch.eye(12), edge_index=torch.cat([ring, ring.flip(0)], 1))
    subgraph = PreparedGraph.of(graph, 1, 1.0, "row").k_hop_subgraph(np.array([6]), 2)
    assert [matrix.shape for matrix in subgraph.hops] == [(3, 5), (1, 3)]
    assert subgraph.features.dense().shape[1] == 5


def whole(graph: Data, runs: int = 3) -> Subgraph:
    return PreparedGraph.of(graph, runs, 2.0, "symmetric").whole


def sparse(x: Tensor) -> Tensor:
    return to_torch(sp.csr_array(x.numpy()))


def agrees(graphs: list[Data], like: Subgraph, x: Tensor) -> None:
    """The subgraph of these graphs multiplies as their dense matrices do, with features x [R, N, F]."""
    subgraph = per_run_subgraph(graphs, 2.0, "symmetric", like)
    assert subgraph.runs == len(graphs)
    torch.testing.assert_close(subgraph.features.dense().expand_as(x), x)
    weight = torch.randn(3, x.shape[2], 4)
    torch.testing.assert_close(subgraph.features.matmul(weight), x @ weight)
    spread = subgraph.propagate(0, x)
    for run, graph in enumerate(graphs):
        matrix = torch.as_tensor(adjacency(graph, 2.0, "symmetric").toarray())
        torch.testing.assert_close(spread[run], matrix @ x[run])


@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_a_different_graph_for_every_run(stored):
    graphs = [two_rings(seed=seed) for seed in range(3)]
    graphs[1].edge_index = graphs[1].edge_index[:, :10]
    x = torch.stack([graph.x for graph in graphs])
    if stored == "sparse":
        for graph in graphs:
            graph.x = sparse(graph.x)
    agrees(graphs, whole(graphs[0]), x)


def wide_graph() -> Data:
    """A ring of 12 nodes, each with one of 12 features."""
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    return Data(x=sparse(torch.eye(12)), edge_index=torch.cat([ring, ring.flip(0)], 1))


def test_other_values_in_the_same_places_stay_sparse():
    graph = wide_graph()
    views = [Data(x=sparse(factor * torch.eye(12)), edge_index=graph.edge_index) for factor in (1.0, 2.0, 3.0)]
    assert not isinstance(per_run_subgraph(views, 2.0, "symmetric", whole(graph)).features.stored, Tensor)
    agrees(views, whole(graph), torch.stack([factor * torch.eye(12) for factor in (1.0, 2.0, 3.0)]))


def test_features_with_another_pattern_keep_their_positions():
    """Other columns in one run, and a run left as it was."""
    graph = wide_graph()
    transposed = Data(x=sparse(torch.eye(12).flip(0)), edge_index=graph.edge_index)
    agrees([transposed, transposed, graph], whole(graph), torch.stack([torch.eye(12).flip(0)] * 2 + [torch.eye(12)]))


def test_the_same_columns_in_other_rows_are_other_places():
    graph = wide_graph()
    moved = torch.eye(12)
    moved[0, 1], moved[1, 1] = 1.0, 0.0
    views = [Data(x=sparse(moved), edge_index=graph.edge_index) for _ in range(3)]
    agrees(views, whole(graph), moved.expand(3, -1, -1))


def test_a_run_may_have_dense_features_beside_sparse_ones():
    graph = wide_graph()
    dense = Data(x=torch.eye(12).roll(1, 0), edge_index=graph.edge_index)
    agrees([graph, dense, graph], whole(graph), torch.stack([torch.eye(12), dense.x, torch.eye(12)]))


def test_other_weights_on_the_same_edges_are_used():
    graph = wide_graph()
    graph.edge_weight = torch.ones(graph.num_edges)
    views = [graph.clone() for _ in range(3)]
    for number, view in enumerate(views):
        view.x, view.edge_index = graph.x, graph.edge_index
        view.edge_weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(number))
    agrees(views, whole(graph), torch.eye(12).expand(3, -1, -1))


def test_what_a_view_does_not_change_is_not_made_again():
    graph = wide_graph()
    like = whole(graph)
    fewer = [Data(x=graph.x, edge_index=graph.edge_index[:, :9]) for _ in range(3)]
    assert per_run_subgraph(fewer, 2.0, "symmetric", like).features is like.features
    louder = [Data(x=sparse(2 * torch.eye(12)), edge_index=graph.edge_index) for _ in range(3)]
    assert per_run_subgraph(louder, 2.0, "symmetric", like).hops is like.hops


def test_output_index_is_the_position_of_a_hops_outputs_among_its_inputs():
    prepared = PreparedGraph.of(two_rings(), 2, 1.0, "count")
    subgraph = prepared.k_hop_subgraph(np.array([3, 11]), 2)
    nodes = [np.array([3, 11])]
    for _ in range(2):
        nodes.insert(0, np.unique(prepared.matrix[nodes[0]].indices))
    for hop, index in enumerate(subgraph.output_index):
        assert nodes[hop][index].tolist() == nodes[hop + 1].tolist()
    assert [index.tolist() for index in subgraph.only(torch.tensor([True, False])).output_index] == [
        index.tolist() for index in subgraph.output_index
    ]
