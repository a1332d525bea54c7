"""GCN: graph convolutions, dense layers between products with the adjacency."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.graphs.sparse import Normalise
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.matmul import batched_matmul
from bangs.nn.models.base import Checked, glorot
from bangs.nn.subgraphs import Features, Subgraph

if TYPE_CHECKING:
    from bangs.nn.models.graphsage import GraphSAGE


@dataclass(frozen=True)
class GCN(Checked):
    """Graph convolutions (Kipf & Welling 2017): H' = σ(Â H W + b), Â = D^-½(A + loops·I)D^-½.

    The paper's code adds self-loops twice, hence `loops = 2` (PyG's `improved=True` with unit edge weights).
    """

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.3
    input_dropout: float = 0.0
    loops: float = 2.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return Convolutions(self, features, classes, rng, "symmetric")


class Convolutions(Network):
    """The network of a GCN, or of GraphSAGE with another adjacency."""

    def __init__(
        self, settings: "GCN | GraphSAGE", features: int, classes: int, rng: Streams, normalise: Normalise
    ) -> None:
        super().__init__()
        self.settings, self.loops, self.normalise, self.hops = settings, settings.loops, normalise, settings.layers
        self.hops_first = settings.input_dropout == 0
        sizes = [features, *[settings.hidden] * (settings.layers - 1), classes]
        self.weight = nn.ParameterList(
            glorot(rng.at("init", layer), *sizes[layer : layer + 2]) for layer in range(settings.layers)
        )
        self.bias = nn.ParameterList(nn.Parameter(torch.zeros(len(rng), 1, size)) for size in sizes[1:])

    def stage(self, number: int, h: Features | Tensor, masks: DropoutMasks | None = None) -> Tensor:
        if isinstance(h, Features):
            return h.drop(masks, self.settings.input_dropout).matmul(self.weight[0])
        bias: Tensor = self.bias[number - 1]
        if number == len(self.weight):
            return h + bias
        hidden = (h + bias).relu_() if masks is None else masks.activate(h, bias, self.settings.dropout)
        return batched_matmul(hidden, self.weight[number])

    def embed(self, subgraph: Subgraph) -> Tensor:
        hidden = len(self.weight) - 1
        if hidden == 0:
            return super().embed(subgraph)
        h = self.stage(0, subgraph.features)
        for hop in range(hidden - 1):
            h = self.stage(hop + 1, subgraph.propagate(hop, h))
        return (subgraph.propagate(hidden - 1, h) + self.bias[hidden - 1]).relu()
