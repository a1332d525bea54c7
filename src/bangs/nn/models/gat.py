"""GAT: a graph attention network."""

from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.graphs.sparse import Normalise, Pattern
from bangs.nn.attention import Heads, aggregate, attention_weights, drop_weights
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.matmul import batched_matmul
from bangs.nn.models.base import Checked, glorot
from bangs.nn.subgraphs import Features, Subgraph


@dataclass(frozen=True)
class GAT(Checked):
    """Graph attention (Veličković et al. 2018); heads concatenated, averaged at the end.

    Head h of a layer gives Σ_j w_ij z_j over i and its neighbours, z = H W_h, w_ij the softmax over j of
    LeakyReLU(a_h·z_j + b_h·z_i). Dropout applies to w and to the layer's input. With `residual`, as in the BANGS paper,
    all layers but the first add H W'. Edge weights are ignored.
    """

    weighted: ClassVar[bool] = False
    hidden: int = 8
    heads: int = 8
    layers: int = 2
    dropout: float = 0.6
    residual: bool = True

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Attention(self, features, classes, rng)


class _Attention(Network):
    normalise: Normalise = "count"
    staged = False

    def __init__(self, settings: GAT, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings, self.hops = settings, settings.layers
        last, heads = settings.layers - 1, settings.heads
        sizes = [features, *[settings.hidden * heads] * last, classes]
        head_widths = [settings.hidden] * last + [classes]
        self.weight, self.source, self.target = (nn.ParameterList() for _ in range(3))
        for layer, width in enumerate(head_widths):
            start = rng.at("init", layer)
            self.weight.append(glorot(start, sizes[layer], heads * width))
            self.source.append(glorot(start.at("source"), heads, width))
            self.target.append(glorot(start.at("target"), heads, width))
        self.residual = nn.ParameterList(
            glorot(rng.at("init", layer, "residual"), *sizes[layer : layer + 2])
            for layer in range(1, settings.layers)
            if settings.residual
        )
        self.bias = nn.ParameterList(nn.Parameter(torch.zeros(len(rng), 1, size)) for size in sizes[1:])
        self._heads: WeakKeyDictionary[Pattern, Heads] = WeakKeyDictionary()

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        return self._forward_layers(subgraph, masks, self.settings.layers) + self.bias[-1]

    def embed(self, subgraph: Subgraph) -> Tensor:
        hidden = self.settings.layers - 1
        if hidden == 0:
            return super().embed(subgraph)
        return (self._forward_layers(subgraph, None, hidden) + self.bias[hidden - 1]).relu()

    def _forward_layers(self, subgraph: Subgraph, masks: DropoutMasks | None, layers: int) -> Tensor:
        """The output of the first `layers` layers, before the bias of the last one: [R, n, d]."""
        rate = self.settings.dropout
        h = self._layer(subgraph, 0, subgraph.features.drop(masks, rate), masks)
        for layer in range(1, layers):
            bias: Tensor = self.bias[layer - 1]
            h = (h + bias).relu() if masks is None else masks.activate(h, bias, rate)
            h = self._layer(subgraph, layer, h, masks)
        return h

    def _layer(self, subgraph: Subgraph, layer: int, x: Features | Tensor, masks: DropoutMasks | None) -> Tensor:
        weight: Tensor = self.weight[layer]
        hop = subgraph.hops[min(layer, len(subgraph.hops) - 1)]
        output_index = subgraph.output_index[layer] if subgraph.output_index else None
        z = x.matmul(weight) if isinstance(x, Features) else batched_matmul(x, weight, active=hop.active)
        heads = self._heads.get(hop.pattern)
        if heads is None:
            heads = self._heads[hop.pattern] = Heads.of(hop, self.settings.heads)
        source, target = self._scores(layer, z)
        target = target if output_index is None else target.index_select(1, output_index)
        weights = attention_weights(heads, source, target, hop.active)
        weights = drop_weights(heads, weights, subgraph.runs, masks, self.settings.dropout)
        out = aggregate(heads, weights, z.unflatten(2, (self.settings.heads, -1)), hop.active)
        last = layer == self.settings.layers - 1
        out = out.mean(2) if last else out.flatten(2)
        if isinstance(x, Features) or not self.settings.residual:
            return out
        x = x if output_index is None else x.index_select(1, output_index)
        if last:
            return out + batched_matmul(x, self.residual[layer - 1])
        # adding inside the product saves a pass over the hidden layer
        return batched_matmul(x, self.residual[layer - 1], plus=out, active=hop.active)

    def _scores(self, layer: int, z: Tensor) -> tuple[Tensor, Tensor]:
        """The attention scores of every node as source and as target: [R, n, H] each, of z [R, n, H·d].

        A single product computes both for all heads, so that z is read once.
        """
        vectors = torch.stack([self.source[layer], self.target[layer]], dim=3)  # [R, H, d, 2]
        each = torch.eye(self.settings.heads, device=z.device)[:, None, None, :]
        matrix = (vectors[..., None] * each).flatten(3).flatten(1, 2)  # [R, H·d, 2·H]
        source, target = batched_matmul(z, matrix).split(self.settings.heads, dim=2)
        return source, target
