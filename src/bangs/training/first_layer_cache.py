"""A first layer Â X W that training and validation share, computed once per step.

Without dropout on the features, the product that validation needs is the one that the next training step needs.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs.graphs.sparse import Sparse
from bangs.nn.loss import Targets
from bangs.nn.subgraphs import Features, Nodes, PreparedGraph
from bangs.training.epoch_loop import TargetNodes
from bangs.training.precomputed_hop import PrecomputedHop


@dataclass(eq=False)
class FirstLayer:
    """Â X W of some nodes, computed again only when W has changed."""

    features: Features
    hop: Sparse  # Â [R·n, R·n_in]
    _cached: tuple[Tensor, int, Tensor] | None = None  # W, its version counter, and Â X W

    @classmethod
    def of(cls, prepared: PreparedGraph, nodes: Nodes) -> "FirstLayer":
        """The layer of the nodes, in their order."""
        sources = prepared.inputs(nodes)
        return cls(prepared.read(sources), prepared.hop(sources, nodes))

    def __call__(self, weight: Tensor) -> Tensor:
        """The layer [R, n, h] with each run's weight [R, F, h], without a gradient."""
        if self._cached is None or self._cached[0] is not weight or self._cached[1] != weight._version:
            self._cached = None  # frees its memory first
            with torch.no_grad():
                product = self.features.matmul(weight).reshape(-1, weight.shape[2])
                layer = (self.hop @ product).view(len(weight), -1, weight.shape[2])
            self._cached = weight, weight._version, layer
        return self._cached[2]

    def gradient(self, gradient: Tensor) -> Tensor:
        """The gradient Xᵀ Âᵀ G [R, F, h] of the weight, with G [R, n, h]."""
        runs, _, width = gradient.shape
        at_inputs = self.hop.matmul_transposed(gradient.reshape(-1, width))
        stored = self.features.stored
        if isinstance(stored, Sparse):
            return stored.matmul_transposed(at_inputs).view(runs, -1, width)
        return stored.transpose(1, 2) @ at_inputs.view(runs, -1, width)


@dataclass(frozen=True, eq=False)
class LayerRows(Features):
    """Features whose product is some rows of a shared layer, with a gradient where those rows have their own layer."""

    layer: FirstLayer
    rows: Tensor | slice  # long [n], or the first n
    row_layer: FirstLayer | None = None  # of these rows alone; None = no gradient

    def matmul(self, weight: Tensor) -> Tensor:
        """The rows [R, n, h] of Â X W."""
        layer = self.layer(weight)
        rows = layer[:, self.rows] if isinstance(self.rows, slice) else layer.index_select(1, self.rows)
        return rows if self.row_layer is None else _CachedProduct.apply(weight, rows, self.row_layer)


class _CachedProduct(torch.autograd.Function):
    """A product that is already computed, with the gradient of its weight."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, product: Tensor, layer: FirstLayer) -> Tensor:
        ctx.layer = layer
        return product.view_as(product)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.layer.gradient(gradient), None, None


def _target_nodes(targets: Targets, prepared: PreparedGraph, features: Features, layers: list[Nodes]) -> TargetNodes:
    """The targets of the last layer's nodes, and their subgraph."""
    hops = tuple(prepared.hop(inputs, outputs) for inputs, outputs in pairwise(layers))
    nodes = torch.as_tensor(layers[-1], device=targets.target.device)
    return TargetNodes(PrecomputedHop(prepared.runs, features, hops), targets.at(nodes))


def shared_first_layer(
    prepared: PreparedGraph, hops: int, train: Targets, val: Targets, *, whole: bool
) -> tuple[TargetNodes, TargetNodes]:
    """The training and the validation nodes of a model with this number of hops; they share their first layer.

    The layer holds the nodes that training needs, sorted, then those that only validation needs.
    """
    nodes = [np.arange(targets.target.shape[1]) if whole else targets.nodes.cpu().numpy() for targets in (train, val)]
    train_layers, val_layers = (prepared.layers(part, hops - 1) for part in nodes)
    train_inputs, val_inputs = train_layers[0], val_layers[0]
    both = np.concatenate([train_inputs, np.setdiff1d(val_inputs, train_inputs)])
    layer = FirstLayer.of(prepared, both)
    train_layer = layer if len(both) == len(train_inputs) else FirstLayer.of(prepared, train_inputs)
    order = np.argsort(both)
    val_rows = torch.as_tensor(order[np.searchsorted(both, val_inputs, sorter=order)], device=prepared.device)
    runs, train_rows = prepared.runs, slice(len(train_inputs))
    train_features = LayerRows(runs, train_layer.features.stored, layer, train_rows, train_layer)
    val_features = LayerRows(runs, layer.features.stored, layer, val_rows)
    return (
        _target_nodes(train, prepared, train_features, train_layers),
        _target_nodes(val, prepared, val_features, val_layers),
    )
