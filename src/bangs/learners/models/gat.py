"""GAT: every node weighs its neighbours by attention."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from bangs.learners.ensemble import Network, Separate
from bangs.learners.models.base import Settings
from bangs.rng import Streams


@dataclass(frozen=True)
class GAT(Settings):
    """Graph attention (Veličković et al. 2018) on stock PyG layers; heads concatenated, averaged at the end.

    Edge weights are not looked at.
    """

    hidden: int = 8
    heads: int = 8
    layers: int = 2
    dropout: float = 0.6

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return Separate(lambda: _Attention(self, features, classes), rng)


class _Attention(nn.Module):
    def __init__(self, settings: GAT, features: int, classes: int) -> None:
        super().__init__()
        self.dropout = settings.dropout
        width = settings.hidden * settings.heads
        sizes = [features, *[width] * (settings.layers - 1)]
        self.layers = nn.ModuleList(
            GATConv(
                size,
                classes if layer == settings.layers - 1 else settings.hidden,
                heads=settings.heads,
                concat=layer < settings.layers - 1,
                dropout=settings.dropout,
                residual=layer > 0,
                add_self_loops=False,
            )
            for layer, size in enumerate(sizes)
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self._attend(x, _looped(edge_index, x), len(self.layers))

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = len(self.layers) - 1
        return self._attend(x, _looped(edge_index, x), hidden).relu() if hidden else self(x, edge_index)

    def _attend(self, x: Tensor, edges: Tensor, layers: int) -> Tensor:
        for layer in range(layers):
            x = self.layers[layer](torch.dropout(x if layer == 0 else x.relu(), self.dropout, self.training), edges)
        return x


def _looped(edge_index: Tensor, x: Tensor) -> Tensor:
    """The edges and one loop per node; PyG's own way asks the GPU for a count, which cannot be captured."""
    return torch.cat([edge_index, torch.arange(x.shape[0], device=x.device).expand(2, -1)], dim=1)
