"""Walks: who is heard over a few edges, found for some nodes without looking at the whole graph."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import NeighbourLists

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class NearWalks:
    """The part of personalised PageRank that short walks make: Σ_h alpha (1 − alpha)^h Ã^h for h = 0 … steps.

    Ã = D̂⁻¹(A + I) as in `PPR`, of which every entry is a lower bound: what is missing are longer walks, and those of
    two edges and more that carry less than `floor`, which are not followed. So the work for a node is that of its
    neighbours' neighbours and of at most 1 / floor others, however large the graph.
    """

    alpha: float = 0.15
    steps: int = 3
    floor: float = 3e-5

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise InvalidInput(f"NearWalks.alpha must lie in (0, 1], got {self.alpha}")
        if self.steps < 1 or not 0 <= self.floor < 1:
            raise InvalidInput(f"NearWalks needs steps from 1 and a floor in [0, 1), got {self.steps}, {self.floor}")

    def __call__(self, graph: "Data | NeighbourLists") -> "Walker":
        return Walker(self, graph if isinstance(graph, NeighbourLists) else NeighbourLists.of(graph))


@dataclass(frozen=True, eq=False)
class Walker:
    """Near walks on one graph, of which only the rows that are walked over are read."""

    walks: NearWalks
    neighbours: NeighbourLists

    def rows(self, nodes: Tensor) -> Any:
        """What each of some nodes long [K] hears of every other: scipy CSR [K, N]."""
        alpha, count = self.walks.alpha, len(nodes)
        one = np.ones(count, dtype=np.float32)
        now = sp.csr_array((one, (np.arange(count), nodes.numpy())), shape=(count, len(self.neighbours)))
        factor = alpha * now
        for step in range(self.walks.steps):
            now = (1 - alpha) * self._over(now)
            if step:  # each of many neighbours carries little, and all of them are heard
                now.data[now.data < self.walks.floor] = 0
                now.eliminate_zeros()
            factor = factor + alpha * now
        return factor

    def _over(self, now: Any) -> Any:
        """One step Ã = D̂⁻¹(A + I) of walks [K, N] over the links of the nodes they have come to: scipy CSR [K, N]."""
        nodes, place = np.unique(now.indices, return_inverse=True)
        here = torch.from_numpy(nodes.astype(np.int64))
        counts, sources, weights = self.neighbours.rows(here)
        own = np.arange(len(nodes))
        line = np.concatenate([np.repeat(own, counts.numpy()), own])
        entries = np.concatenate([weights.numpy(), np.ones(len(nodes), dtype=np.float32)])
        entries /= (self.neighbours.degree(here) + 1).numpy()[line]
        ends = (line, np.concatenate([sources.numpy(), nodes]))
        step = sp.csr_array((entries, ends), shape=(len(nodes), len(self.neighbours)))
        return sp.csr_array((now.data, place, now.indptr), shape=(len(now.indptr) - 1, len(nodes))) @ step
