"""Augmented views of a graph: dropped features, dropped edges, noise."""

from copy import copy
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.graphs.sparse import csr
from bangs.utils.setting_checks import check_number


class View(Protocol):
    """Makes an augmented copy of a graph from one run's random stream; the given graph is unchanged."""

    def __call__(self, graph: Data, generator: torch.Generator) -> Data: ...


@dataclass(frozen=True)
class Same:
    """The graph itself."""

    def __call__(self, graph: Data, generator: torch.Generator) -> Data:
        return graph


@dataclass(frozen=True)
class DropFeatures:
    """Inverted dropout on the features: each is zero with probability `rate`, the others grow by 1 / (1 − rate)."""

    rate: float

    def __post_init__(self) -> None:
        check_number("DropFeatures.rate", self.rate, within="[0, 1)")

    def __call__(self, graph: Data, generator: torch.Generator) -> Data:
        x = graph.x
        values = x.values() if x.layout == torch.sparse_csr else x
        keep = _uniform(values.shape, generator, values) >= self.rate
        values = values * keep / (1 - self.rate)
        if x.layout == torch.sparse_csr:
            # zeros are stored, so that the pattern stays the same and is not prepared again
            values = csr(x.crow_indices(), x.col_indices(), values, tuple(x.shape))
        return copy(graph).update({"x": values})


@dataclass(frozen=True)
class DropEdges:
    """The graph without a share `rate` of its undirected edges; both directions are dropped together.

    CPL samples directed edges, self-loops included. Ours keeps an undirected graph undirected and leaves self-loops
    to the model.
    """

    rate: float

    def __post_init__(self) -> None:
        check_number("DropEdges.rate", self.rate, within="[0, 1)")

    def __call__(self, graph: Data, generator: torch.Generator) -> Data:
        source, target = graph.edge_index
        pair = torch.minimum(source, target) * int(graph.num_nodes or 0) + torch.maximum(source, target)
        pairs, member = pair.unique(return_inverse=True)
        dropped = torch.randperm(len(pairs), generator=generator, device=generator.device)
        dropped = dropped[: round(self.rate * len(pairs))].to(pair.device)
        keep_pair = torch.ones(len(pairs), dtype=torch.bool, device=pair.device)
        keep_pair[dropped] = False
        keep = keep_pair[member]
        smaller = copy(graph).update({"edge_index": graph.edge_index[:, keep]})
        if graph.get("edge_weight") is not None:
            smaller.edge_weight = graph.edge_weight[keep]
        return smaller


@dataclass(frozen=True)
class Noise:
    """Features with noise: x + u · std(x) · rate / 2, u uniform in [0, 1) and std taken per column; always dense."""

    rate: float

    def __post_init__(self) -> None:
        check_number("Noise.rate", self.rate, within="[0, 1)")

    def __call__(self, graph: Data, generator: torch.Generator) -> Data:
        x = graph.x.to_dense() if graph.x.layout == torch.sparse_csr else graph.x
        spread = x.std(dim=0) if len(x) > 1 else torch.zeros_like(x[0])
        return copy(graph).update({"x": x + _uniform(x.shape, generator, x) * spread * (self.rate / 2)})


def _uniform(shape: torch.Size, generator: torch.Generator, like: Tensor) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device).to(like.device)
