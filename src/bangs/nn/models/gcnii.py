"""GCNII: deep graph convolutions with initial residual and identity mapping."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.matmul import batched_matmul
from bangs.nn.models.base import Checked, glorot
from bangs.nn.subgraphs import Subgraph


@dataclass(frozen=True)
class GCNII(Checked):
    """Deep convolutions with initial residual and identity mapping (Chen et al. 2020).

    H' = σ(((1−alpha) Â H + alpha H⁰)((1−β_l) I + β_l W_l)), β_l = log(theta / l + 1). The W_l decay `decay` times as
    much as the first and last weights.
    """

    hidden: int = 64
    layers: int = 16
    dropout: float = 0.6
    alpha: float = 0.1
    theta: float = 0.5
    decay: float = 20.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Deep(self, features, classes, rng)


class _Deep(Network):
    def __init__(self, settings: GCNII, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        self.first = glorot(rng.at("init", "first"), features, settings.hidden)
        self.first_bias = nn.Parameter(torch.zeros(len(rng), 1, settings.hidden))
        self.weight = nn.ParameterList(
            glorot(rng.at("init", layer), settings.hidden, settings.hidden) for layer in range(settings.layers)
        )
        self.last = glorot(rng.at("init", "last"), settings.hidden, classes)
        self.last_bias = nn.Parameter(torch.zeros(len(rng), 1, classes))

    def decay(self, name: str) -> float:
        return self.settings.decay if name.startswith("weight.") else 1.0

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        h = self.embed(subgraph, masks)
        return batched_matmul(h if masks is None else masks.drop(h, self.settings.dropout), self.last) + self.last_bias

    def embed(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        rate = self.settings.dropout
        start = h = (subgraph.features.drop(masks, rate).matmul(self.first) + self.first_bias).relu()
        for layer, weight in enumerate(self.weight):
            h = h if masks is None else masks.drop(h, rate)
            share = math.log(self.settings.theta / (layer + 1) + 1)
            mixed = (1 - self.settings.alpha) * subgraph.propagate(layer, h) + self.settings.alpha * start
            h = ((1 - share) * mixed + share * batched_matmul(mixed, weight)).relu()
        return h
