"""A shared game in one process; tests/distributed/test_ranks.py runs it in two."""

import pytest
import torch
from torch_geometric.data import Data

from bangs.distributed import ranks
from bangs.graphs.pagerank_push import Push, PushOperator
from bangs.valuation.distributed_information import _pairs


@pytest.fixture
def operator() -> PushOperator:
    edges = torch.randint(0, 200, (2, 500), generator=torch.Generator().manual_seed(0))
    return Push(error=1e-4)(Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=200))


@pytest.mark.parametrize("max_entries", [10**6, 900, 300])
def test_ranks_push_the_columns_that_one_process_pushes(operator: PushOperator, max_entries: int) -> None:
    nodes = torch.arange(0, 200, 10)
    shared, alone = _pairs(operator, nodes, max_entries), operator.pairs(nodes, max_entries)
    assert len(shared.node) <= max_entries
    for part in ("node", "player", "weight"):
        assert torch.equal(getattr(shared, part), getattr(alone, part))
    assert shared.bound == pytest.approx(alone.bound, rel=1e-6)


def test_the_bound_on_entries_holds_for_all_ranks_together(
    operator: PushOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "all_reduce", lambda x: 2 * x)  # as if another had found as much
    assert len(_pairs(operator, torch.arange(0, 200, 10), 900).node) <= 450
