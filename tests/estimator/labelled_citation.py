"""A small citation graph of which some nodes have a label."""

import torch
from torch_geometric.data import Data

from bangs.core.types import Labels, Task
from bangs.graphs.datasets.synthetic import citation


def labelled_citation(
    labels: int = 6, features: int = 40, junk: bool = False, nodes: int = 240
) -> tuple[Data, torch.Tensor]:
    """A small citation graph with some labels a class, and the truth; junk = one random column is all it shows."""
    data = citation(nodes=nodes, classes=3, features=features, isolated=0.0, signal=0.5, seed=3)
    truth = data.y.clone()
    y = torch.full_like(truth, -1)
    for label in range(3):
        nodes_of_class = (truth == label).nonzero().flatten()[:labels]
        y[nodes_of_class] = label
    x = torch.randn(nodes, 1, generator=torch.Generator().manual_seed(0)) if junk else data.x
    return Data(x=x, edge_index=data.edge_index, y=y), truth


def linear_task() -> Task:
    """Ninety nodes of which the first forty have a label; the others are held out."""
    data, truth = labelled_citation(nodes=90)
    given = torch.where(torch.arange(90) < 40, truth, -1)[None]
    graph = Data(x=data.x, edge_index=data.edge_index)
    return Task(graph, Labels.given(given), torch.where(given >= 0, -1, truth), 3)
