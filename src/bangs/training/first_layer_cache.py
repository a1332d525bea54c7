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
from bangs.nn.ensemble import Targets
from bangs.nn.subgraphs import Features, PreparedGraph
from bangs.training.epochs import TargetNodes
from bangs.training.precomputed_hop import PrecomputedHop


@dataclass(frozen=True, eq=False)
class FirstLayerInputs:
    """The features and the hop that the first layer of some nodes depends on."""

    features: Features
    hop: Sparse  # Â [R·n, R·n_in]

    @classmethod
    def of(cls, prepared: PreparedGraph, nodes: "np.ndarray[Any, Any]") -> "FirstLayerInputs":
        """The inputs of the nodes, in their order."""
        sources = prepared.inputs(nodes)
        return cls(prepared.read(sources), prepared.hop(sources, nodes))

    def matmul(self, weight: Tensor) -> Tensor:
        """Â X W [R, n, h] with each run's weight [R, F, h]."""
        product = self.features.matmul(weight).reshape(-1, weight.shape[2])
        return (self.hop @ product).view(len(weight), -1, weight.shape[2])

    def matmul_transposed(self, gradient: Tensor) -> Tensor:
        """The gradient Xᵀ Âᵀ G [R, F, h] of the weight, with G [R, n, h]."""
        runs, _, width = gradient.shape
        at_inputs = self.hop.matmul_transposed(gradient.reshape(-1, width))
        stored = self.features.stored
        if isinstance(stored, Sparse):
            return stored.matmul_transposed(at_inputs).view(runs, -1, width)
        return stored.transpose(1, 2) @ at_inputs.view(runs, -1, width)


class FirstLayer:
    """Â X W of some nodes, computed again only when W has changed."""

    def __init__(self, inputs: FirstLayerInputs):
        self.inputs = inputs
        self._cached: tuple[Tensor, int, Tensor] | None = None  # W, its version counter, and Â X W

    def __call__(self, weight: Tensor) -> Tensor:
        """The layer [R, n, h], without a gradient."""
        if self._cached is None or self._cached[0] is not weight or self._cached[1] != weight._version:
            self._cached = None  # frees its memory first
            with torch.no_grad():
                self._cached = weight, weight._version, self.inputs.matmul(weight)
        return self._cached[2]


@dataclass(frozen=True, eq=False)
class TrainFeatures(Features):
    """Features of the training nodes: their product is the first rows of the shared layer, with its own gradient."""

    layer: FirstLayer
    inputs: FirstLayerInputs  # of these rows

    def matmul(self, weight: Tensor) -> Tensor:
        """The rows [R, n, h] of Â X W."""
        rows = self.layer(weight)[:, : self.inputs.hop.shape[0] // self.runs]
        product: Tensor = _CachedProduct.apply(weight, rows, self.inputs)
        return product


@dataclass(frozen=True, eq=False)
class ValFeatures(Features):
    """Features of the validation nodes: their product is some rows of the shared layer, without a gradient."""

    layer: FirstLayer
    rows: Tensor  # long [n]

    def matmul(self, weight: Tensor) -> Tensor:
        """The rows [R, n, h] of Â X W."""
        return self.layer(weight).index_select(1, self.rows)


class _CachedProduct(torch.autograd.Function):
    """A product that is already computed, with the gradient of its weight."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, product: Tensor, inputs: FirstLayerInputs) -> Tensor:
        ctx.inputs = inputs
        return product.view_as(product)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.inputs.matmul_transposed(gradient), None, None


def _nodes_by_layer(targets: Targets, prepared: PreparedGraph, hops: int, whole: bool) -> "list[np.ndarray[Any, Any]]":
    """The nodes of every layer that the targets' logits depend on, from the first layer to the target nodes."""
    nodes = (targets.target >= 0).any(0).nonzero().squeeze(1).cpu().numpy()
    layers = [np.arange(targets.target.shape[1]) if whole else nodes]
    for _ in range(hops - 1):
        layers.insert(0, prepared.inputs(layers[0]))
    return layers


def _target_nodes(
    targets: Targets, prepared: PreparedGraph, features: Features, layers: "list[np.ndarray[Any, Any]]"
) -> TargetNodes:
    """The targets of the last layer's nodes, and their subgraph."""
    hops = tuple(prepared.hop(inputs, outputs) for inputs, outputs in pairwise(layers))
    nodes = torch.as_tensor(layers[-1], device=targets.target.device)
    return TargetNodes(PrecomputedHop(prepared.runs, features, hops), targets.at(nodes))


def shared_first_layer(
    prepared: PreparedGraph, hops: int, train: Targets, val: Targets, *, whole: bool
) -> tuple[TargetNodes, TargetNodes]:
    """The training and the validation nodes of a model with so many hops; they share their first layer.

    The layer holds the nodes that training needs, sorted, then those that only validation needs.
    """
    train_layers, val_layers = (
        _nodes_by_layer(train, prepared, hops, whole),
        _nodes_by_layer(val, prepared, hops, whole),
    )
    nodes = np.concatenate([train_layers[0], np.setdiff1d(val_layers[0], train_layers[0])])
    layer = FirstLayer(FirstLayerInputs.of(prepared, nodes))
    inputs = layer.inputs if len(nodes) == len(train_layers[0]) else FirstLayerInputs.of(prepared, train_layers[0])
    order = np.argsort(nodes)
    rows = torch.as_tensor(order[np.searchsorted(nodes, val_layers[0], sorter=order)], device=prepared.device)
    return (
        _target_nodes(
            train, prepared, TrainFeatures(prepared.runs, inputs.features.stored, layer, inputs), train_layers
        ),
        _target_nodes(val, prepared, ValFeatures(prepared.runs, layer.inputs.features.stored, layer, rows), val_layers),
    )
