"""Edge lists, and their conversion to undirected edges."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeList:
    """The edges of a graph alone; used in place of a `Data`, without importing PyG."""

    edge_index: Tensor  # long [2, E]
    num_nodes: int
    edge_weight: Tensor | None = None  # float [E]

    def get(self, name: str) -> Any:
        """The field of this name, or None; as `Data.get`."""
        return getattr(self, name, None)


def undirected(
    source: npt.NDArray[Any], target: npt.NDArray[Any], nodes: int, weight: npt.NDArray[Any] | None = None
) -> EdgeList:
    """Both directions of every edge, without self-loops or duplicates, sorted by source.

    Weights of a repeated edge add up; of two opposite edges the larger weight counts.
    """
    not_loop = source != target
    keys, weights = merged(source[not_loop], target[not_loop], None if weight is None else weight[not_loop], nodes)
    keys, weights = mirrored(keys, weights, nodes)
    edge_index = torch.from_numpy(np.stack(np.divmod(keys, nodes)))
    return EdgeList(edge_index, nodes, None if weights is None else torch.from_numpy(weights).float())


def merged(
    source: npt.NDArray[Any], target: npt.NDArray[Any], weight: npt.NDArray[Any] | None, nodes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """The sorted keys source · N + target of the distinct edges, and the sums of their weights."""
    keys = source.astype(np.int64) * nodes + target.astype(np.int64)
    if weight is None:
        return distinct(keys), None
    unique, inverse = np.unique(keys, return_inverse=True)
    return unique, np.bincount(inverse, weight, len(unique)).astype(np.float64)


def mirrored(
    keys: npt.NDArray[np.int64], weight: npt.NDArray[np.float64] | None, nodes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """The sorted keys source · N + target of edges and their reverses, and the weights.

    Of an edge and its reverse the larger weight counts, since files often list each edge both ways.
    """
    both_directions = np.concatenate([keys, keys % nodes * nodes + keys // nodes])
    if weight is None:
        return distinct(both_directions), None
    unique, inverse = np.unique(both_directions, return_inverse=True)
    larger = np.zeros(len(unique))
    np.maximum.at(larger, inverse, np.concatenate([weight, weight]))
    return unique, larger


def distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The distinct numbers, sorted; a plain sort, which is much faster than `np.unique` for very many numbers."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]
