"""Personalised PageRank truncated to short walks, for some rows without reading the whole graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its `sparse` is imported when first used
import torch
from torch import Tensor

from bangs.graphs.neighbours import NeighbourLists
from bangs.utils.setting_checks import check_integer, check_number


@dataclass(frozen=True)
class TruncatedPPR:
    """The part of personalised PageRank from walks of at most `steps` edges: Σ_h alpha (1 − alpha)^h Ã^h.

    Ã = D̂⁻¹(A + I) as in `PPR`. Every entry is a lower bound of PPR's: longer walks are missing, and so are walks of two
    or more edges with a probability below `floor`. So the work for a node is bounded by its neighbours' neighbours and
    1 / floor other nodes, however large the graph.
    """

    alpha: float = 0.15
    steps: int = 3
    floor: float = 3e-5

    def __post_init__(self) -> None:
        check_number("TruncatedPPR.alpha", self.alpha, within="(0, 1]")
        check_integer("TruncatedPPR.steps", self.steps, least=1)
        check_number("TruncatedPPR.floor", self.floor, within="[0, 1)")

    def rows(self, neighbours: NeighbourLists, nodes: Tensor) -> Any:
        """The PPR rows of some nodes long [K]: scipy CSR [K, N]; only the edges of nodes that walks visit are read."""
        count, ones = len(nodes), np.ones(len(nodes), dtype=np.float32)
        walks = scipy.sparse.csr_array((ones, (np.arange(count), nodes.numpy())), shape=(count, len(neighbours)))
        total = self.alpha * walks
        for step in range(self.steps):
            walks = (1 - self.alpha) * _step(neighbours, walks)
            if step:  # not in the first step, so that no direct neighbour is dropped
                walks.data[walks.data < self.floor] = 0
                walks.eliminate_zeros()
            total = total + self.alpha * walks
        return total


def _step(neighbours: NeighbourLists, walks: Any) -> Any:
    """walks [K, N] times Ã = D̂⁻¹(A + I), from the rows of the visited nodes: scipy CSR [K, N]."""
    nodes, local_index = np.unique(walks.indices, return_inverse=True)
    reached = torch.from_numpy(nodes.astype(np.int64))
    counts, sources, weights = neighbours.rows(reached)
    index = np.arange(len(nodes))
    row = np.concatenate([np.repeat(index, counts.numpy()), index])
    entries = np.concatenate([weights.numpy(), np.ones(len(nodes), dtype=np.float32)])
    entries /= (neighbours.degree(reached) + 1).numpy()[row]
    coordinates = (row, np.concatenate([sources.numpy(), nodes]))
    step = scipy.sparse.csr_array((entries, coordinates), shape=(len(nodes), len(neighbours)))
    shape = (len(walks.indptr) - 1, len(nodes))
    return scipy.sparse.csr_array((walks.data, local_index, walks.indptr), shape=shape) @ step
