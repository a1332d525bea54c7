"""Truncated PPR: a lower bound of personalised PageRank, exact for long walks without a floor."""

import pytest
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import NeighbourLists
from bangs.graphs.pagerank import ExactPPR
from bangs.graphs.pagerank_truncated import TruncatedPPR
from tests.conftest import two_rings


def star(leaves: int) -> Data:
    """Node 0 in the middle."""
    ends = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)])
    return Data(edge_index=torch.cat([ends, ends.flip(0)], dim=1), num_nodes=leaves + 1)


def test_two_nodes_and_one_edge_are_known_on_paper() -> None:
    rows = TruncatedPPR(alpha=0.5, steps=1, floor=0.0).rows(NeighbourLists.of(star(1)), torch.tensor([0]))
    # ½ stays, and of the other half, walked once, each node gets ½ · ½ · ½
    assert rows.toarray()[0].tolist() == pytest.approx([0.5 + 0.125, 0.125])


def test_long_walks_make_all_of_personalised_pagerank() -> None:
    graph = two_rings(24, 3)
    exact = ExactPPR()(graph).matrix
    nodes = torch.tensor([3, 0, 17])
    rows = torch.from_numpy(TruncatedPPR(steps=100, floor=0.0).rows(NeighbourLists.of(graph), nodes).toarray())
    assert rows.tolist() == [pytest.approx(row, abs=1e-6) for row in exact[nodes].tolist()]


def test_weights_repeats_and_loops_count_as_in_personalised_pagerank() -> None:
    graph = two_rings(24, 3)
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[0, 5, 5], [1, 5, 2]])], dim=1)
    graph.edge_weight = torch.rand(graph.edge_index.shape[1], generator=torch.Generator().manual_seed(0))
    exact, nodes = ExactPPR()(graph).matrix, torch.arange(24)
    rows = torch.from_numpy(TruncatedPPR(steps=100, floor=0.0).rows(NeighbourLists.of(graph), nodes).toarray())
    assert rows.tolist() == [pytest.approx(row, abs=1e-6) for row in exact.tolist()]


@pytest.mark.parametrize("walks", [TruncatedPPR(), TruncatedPPR(steps=2), TruncatedPPR(floor=0.02)])
def test_no_entry_exceeds_personalised_pagerank(walks: TruncatedPPR) -> None:
    graph = two_rings(40, 2)
    exact = ExactPPR()(graph).matrix
    rows = torch.from_numpy(walks.rows(NeighbourLists.of(graph), torch.arange(40)).toarray())
    assert (rows <= exact + 1e-6).all()
    assert (rows > 0).any(1).all()


def test_every_direct_neighbour_has_an_entry_however_many_there_are() -> None:
    rows = TruncatedPPR(floor=0.01).rows(NeighbourLists.of(star(500)), torch.tensor([0]))
    assert rows.nnz == 501


def test_a_node_without_edges_has_only_its_own_entry() -> None:
    graph = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=2)
    assert TruncatedPPR().rows(NeighbourLists.of(graph), torch.tensor([1])).toarray()[0, 0] == 0


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"steps": 0}, {"floor": 1.0}, {"floor": -0.1}])
def test_invalid_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="TruncatedPPR"):
        TruncatedPPR(**wrong)  # type: ignore[arg-type]
