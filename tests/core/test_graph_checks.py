"""Valid graphs pass the checks; the messages for others are tested in tests/integration/test_bad_input.py."""

import torch
from torch_geometric.data import Data

from bangs.core.graph_checks import check_graph
from tests.conftest import two_rings


def test_the_check_of_a_valid_graph_returns_its_number_of_nodes():
    assert check_graph(two_rings(10)) == 10
    lonely = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert check_graph(lonely) == 3
