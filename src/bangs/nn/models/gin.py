"""GIN: an isomorphism network with max aggregation."""

from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.graphs.sparse import Normalise, Pattern, Sparse
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.matmul import batched_matmul
from bangs.nn.models.base import Checked, uniform
from bangs.nn.segment_max import SparseNeighbourMax, segment_max
from bangs.nn.subgraphs import Features, Subgraph

SELF_WEIGHT = 1.2  # of a node's own features beside the maximum: 1 + ε


@dataclass(frozen=True)
class GIN(Checked):
    """Isomorphism network (Xu et al. 2019) with max aggregation, as in the paper's table.

    h' = W(1.2 h_v + max over v and its neighbours) + b, tanh between the two layers. Edge weights are ignored.
    """

    weighted: ClassVar[bool] = False
    hidden: int = 128
    dropout: float = 0.3

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Isomorphism(self, features, classes, rng)


class _Isomorphism(Network):
    normalise: Normalise = "count"
    staged = False
    hops = 2

    def __init__(self, settings: GIN, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        sizes = (features, settings.hidden, classes)
        self.weight, self.bias = nn.ParameterList(), nn.ParameterList()
        for layer in range(2):
            start, (rows, columns) = rng.at("init", layer), sizes[layer : layer + 2]
            self.weight.append(uniform(start, rows, columns))
            self.bias.append(uniform(start.at("bias"), 1, columns, inputs=rows))
        self._sparse_max: WeakKeyDictionary[Pattern, tuple[Pattern, SparseNeighbourMax]] = WeakKeyDictionary()

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        h = self.embed(subgraph, masks)
        h = h if masks is None else masks.drop(h, self.settings.dropout)
        return batched_matmul(self._mixed(subgraph, 1, h), self.weight[1]) + self.bias[1]

    def embed(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        stored = subgraph.features.drop(masks, self.settings.dropout).stored
        mixed = self._mixed_sparse(subgraph, stored) if isinstance(stored, Sparse) else self._mixed(subgraph, 0, stored)
        h: Tensor = Features(subgraph.runs, mixed).matmul(self.weight[0]) + self.bias[0]
        return h.tanh()

    def _mixed(self, subgraph: Subgraph, layer: int, x: Tensor) -> Tensor:
        """1.2 times a node's own features plus the neighbour maximum: [1 or R, n, d] of x [1 or R, m, d]."""
        hop = subgraph.hops[min(layer, len(subgraph.hops) - 1)]
        pattern = hop.pattern
        if len(x) < subgraph.runs:  # shared features are reduced once, unless every run has its own graph
            pattern, x = (pattern.block, x) if pattern.block is not None else (pattern, x.expand(subgraph.runs, -1, -1))
        active = hop.active if pattern is hop.pattern else None
        top = segment_max(pattern, x.reshape(-1, x.shape[2]), active).view(len(x), -1, x.shape[2])
        own = x if not subgraph.output_index else x.index_select(1, subgraph.output_index[layer])
        return torch.add(top, own, alpha=SELF_WEIGHT)

    def _mixed_sparse(self, subgraph: Subgraph, stored: Sparse) -> Sparse:
        """The same for sparse features: [R·n, R·F]."""
        hop = subgraph.hops[0]
        cached = self._sparse_max.get(hop.pattern)
        if cached is None or cached[0] is not stored.pattern:
            output_index = subgraph.output_index[0] if subgraph.output_index else None
            neighbour_max = SparseNeighbourMax.of(hop.pattern, stored.pattern, output_index)
            cached = self._sparse_max[hop.pattern] = (stored.pattern, neighbour_max)
        return cached[1](stored.values, SELF_WEIGHT, hop.active)
