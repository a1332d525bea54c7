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


def undirected(source: npt.NDArray[Any], target: npt.NDArray[Any], nodes: int) -> Tensor:
    """Both directions of every edge, without self-loops or duplicates, sorted by source: long [2, E]."""
    apart = source != target
    keys = source[apart].astype(np.int64) * nodes + target[apart].astype(np.int64)
    return torch.from_numpy(np.stack(np.divmod(mirrored(keys, None, nodes)[0], nodes)))


def mirrored(
    keys: npt.NDArray[np.int64], weight: npt.NDArray[np.float64] | None, nodes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]:
    """The sorted keys source · N + target of edges and their reverses, and the weights.

    Of an edge and its reverse the larger weight counts, since files often list each edge both ways.
    """
    listed = np.concatenate([keys, keys % nodes * nodes + keys // nodes])
    if weight is None:
        return distinct(listed), None
    both, place = np.unique(listed, return_inverse=True)
    larger = np.zeros(len(both))
    np.maximum.at(larger, place, np.concatenate([weight, weight]))
    return both, larger


def distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The distinct numbers, sorted; a plain sort, which is much faster than `np.unique` for very many numbers."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]
