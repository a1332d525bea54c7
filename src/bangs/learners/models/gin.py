"""GIN: every node takes the maximum over its neighbours."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv

from bangs.learners.ensemble import Network, Separate
from bangs.learners.models.base import Settings
from bangs.rng import Streams


@dataclass(frozen=True)
class GIN(Settings):
    """Isomorphism network (Xu et al. 2019) with max aggregation on stock PyG layers, as in the paper's table.

    h' = W(1.2 h_v + max over v and its neighbours) + b, tanh between the two layers. Edge weights are
    not looked at.
    """

    hidden: int = 128
    dropout: float = 0.3

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return Separate(lambda: _Isomorphism(self, features, classes), rng)


class _Isomorphism(nn.Module):
    def __init__(self, settings: GIN, features: int, classes: int) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.first = GINConv(nn.Linear(features, settings.hidden), eps=0.2, aggr="max")
        self.second = GINConv(nn.Linear(settings.hidden, classes), eps=0.2, aggr="max")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = torch.dropout(self.embed(x, edge_index), self.dropout, self.training)
        logits: Tensor = self.second(h, _looped(edge_index, x))
        return logits

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.first(torch.dropout(x, self.dropout, self.training), _looped(edge_index, x)).tanh()
        return h


def _looped(edge_index: Tensor, x: Tensor) -> Tensor:
    """The edges and one loop per node; PyG's own way asks the GPU for a count, which cannot be captured."""
    return torch.cat([edge_index, torch.arange(x.shape[0], device=x.device).expand(2, -1)], dim=1)
