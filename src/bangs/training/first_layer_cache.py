"""Once: a first layer that training and the look at validation share, taken once after every step.

Where nothing random comes before it, the product Â X W that the look needs is the one the next step begins with.
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
class Entry:
    """The way from features to the first layer of some nodes."""

    features: Features
    hop: Sparse  # Â [R·n, R·n_in]

    @classmethod
    def of(cls, around: PreparedGraph, nodes: "np.ndarray[Any, Any]") -> "Entry":
        """The entry of the nodes, in their order."""
        inputs = around.inputs(nodes)
        return cls(around.read(inputs), around.hop(inputs, nodes))

    def times(self, weight: Tensor) -> Tensor:
        """Â X W [R, n, h] with each run's weight [R, F, h]."""
        product = self.features.times(weight).reshape(-1, weight.shape[2])
        return (self.hop @ product).view(len(weight), -1, weight.shape[2])

    def back(self, gradient: Tensor) -> Tensor:
        """The gradient Xᵀ Âᵀ G [R, F, h] of the weight, with G [R, n, h]."""
        runs, _, width = gradient.shape
        spread = self.hop.back(gradient.reshape(-1, width))
        stored = self.features.stored
        if isinstance(stored, Sparse):
            return stored.back(spread).view(runs, -1, width)
        return stored.transpose(1, 2) @ spread.view(runs, -1, width)


class FirstLayer:
    """Â X W of some nodes, taken again only when W has changed."""

    def __init__(self, entry: Entry):
        self.entry = entry
        self._taken: tuple[Tensor, int, Tensor] | None = None  # W, how often it had been written to, and Â X W

    def __call__(self, weight: Tensor) -> Tensor:
        """The layer [R, n, h], without a gradient."""
        if self._taken is None or self._taken[0] is not weight or self._taken[1] != weight._version:
            self._taken = None  # its room is needed for what comes
            with torch.no_grad():
                self._taken = weight, weight._version, self.entry.times(weight)
        return self._taken[2]


@dataclass(frozen=True, eq=False)
class Learned(Features):
    """Features whose product with a weight is the first rows of a layer; the gradient is theirs alone."""

    layer: FirstLayer
    entry: Entry  # of these rows

    def times(self, weight: Tensor) -> Tensor:
        """The rows [R, n, h] of Â X W."""
        known = self.layer(weight)[:, : self.entry.hop.shape[0] // self.runs]
        product: Tensor = _Known.apply(weight, known, self.entry)
        return product


@dataclass(frozen=True, eq=False)
class Asked(Features):
    """Features whose product with a weight is some rows of a layer; there is no gradient."""

    layer: FirstLayer
    rows: Tensor  # long [n]

    def times(self, weight: Tensor) -> Tensor:
        """The rows [R, n, h] of Â X W."""
        return self.layer(weight).index_select(1, self.rows)


class _Known(torch.autograd.Function):
    """What is known already, with the gradient of the product it came from."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, known: Tensor, entry: Entry) -> Tensor:
        ctx.entry = entry
        return known.view_as(known)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.entry.back(gradient), None, None


def _chain(targets: Targets, around: PreparedGraph, hops: int, whole: bool) -> "list[np.ndarray[Any, Any]]":
    """The nodes whose first layer decides the targets' logits, those of the second, and so on to the targets' nodes."""
    nodes = (targets.target >= 0).any(0).nonzero().squeeze(1).cpu().numpy()
    chain = [np.arange(targets.target.shape[1]) if whole else nodes]
    for _ in range(hops - 1):
        chain.insert(0, around.inputs(chain[0]))
    return chain


def _part(
    targets: Targets, around: PreparedGraph, features: Features, chain: "list[np.ndarray[Any, Any]]"
) -> TargetNodes:
    """The targets of the chain's last nodes, and the subgraph that leads to them."""
    hops = tuple(around.hop(inputs, outputs) for inputs, outputs in pairwise(chain))
    nodes = torch.as_tensor(chain[-1], device=targets.target.device)
    return TargetNodes(PrecomputedHop(around.runs, features, hops), targets.at(nodes))


def parts(
    around: PreparedGraph, hops: int, train: Targets, val: Targets, *, whole: bool
) -> tuple[TargetNodes, TargetNodes]:
    """The training and the validation nodes of a model that sees so many hops, sharing their first layer.

    The layer holds the training nodes, sorted as in any subgraph, then those that validation alone needs.
    """
    learned, asked = _chain(train, around, hops, whole), _chain(val, around, hops, whole)
    nodes = np.concatenate([learned[0], np.setdiff1d(asked[0], learned[0])])
    layer = FirstLayer(Entry.of(around, nodes))
    entry = layer.entry if len(nodes) == len(learned[0]) else Entry.of(around, learned[0])
    order = np.argsort(nodes)
    rows = torch.as_tensor(order[np.searchsorted(nodes, asked[0], sorter=order)], device=around.device)
    return (
        _part(train, around, Learned(around.runs, entry.features.stored, layer, entry), learned),
        _part(val, around, Asked(around.runs, layer.entry.features.stored, layer, rows), asked),
    )
