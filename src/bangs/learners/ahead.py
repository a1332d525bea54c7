"""Ahead: the first hop taken once, before training, where a model multiplies with its first weight alone: (Â X) W.

Then an epoch needs the hidden layer of the labelled nodes' neighbours and nothing beyond them, each run its own.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.graphs.sparse import Sparse
from bangs.learners.fields import DENSE_ABOVE, Features, Field, Surroundings
from bangs.learners.sessions import Part

ROUND = 64  # numbers of nodes are multiples of it
MOST = 2**31  # bytes of features that are laid out anew for every run


@dataclass(frozen=True, eq=False)
class Ahead(Field):
    """A field whose features, or their product with a weight (`once`), have had the first hop already."""

    def only(self, busy: Tensor) -> "Ahead":
        """The field as it is: dense products leave no run out."""
        return self

    def propagate(self, hop: int, x: Tensor) -> Tensor:
        return x if hop == 0 else super().propagate(hop - 1, x)


@dataclass(frozen=True, eq=False)
class FirstHop:
    """A graph's features after one hop; gives the fields of every run's own nodes."""

    matrix: "sp.csr_array[Any]"  # Â [N, N]
    features: Tensor  # Â X, float [N, F]

    @classmethod
    def of(cls, around: Surroundings) -> "FirstHop | None":
        """None where a hop leaves the features sparse, so that sparse products cost less."""
        x, matrix = around.features, around.matrix
        if not isinstance(x, Tensor):
            # words of neighbours taken as independent of each other
            filled = 1 - (1 - x.nnz / np.prod(x.shape)) ** (matrix.nnz / matrix.shape[0])
            if filled < DENSE_ABOVE:
                return None
            x = torch.as_tensor(x.toarray())
        return cls(matrix, Sparse.of(matrix, around.device).times(x.to(around.device).float()))

    def part(self, target: Tensor, weight: Tensor, hops: int) -> Part | None:
        """The nodes with a target [R, N] and what decides their logits, run by run; None where it takes too much room.

        Runs with fewer nodes are filled up with nodes of no target, and with features that nothing leads to.
        """
        found = [own.nonzero().squeeze(1).cpu().numpy() for own in target >= 0]
        outputs = found
        layers: list[sp.csr_array[Any]] = []
        for _ in range(hops - 1):
            rows = [self.matrix[own] for own in outputs]
            inputs = [np.unique(own.indices) for own in rows]
            layers.insert(0, _blocks([own[:, below] for own, below in zip(rows, inputs, strict=True)]))
            outputs = inputs
        if 4 * len(outputs) * max(map(len, outputs)) * self.features.shape[1] > MOST:
            return None
        device = self.features.device
        seen = self.features[_filled(outputs, 0).to(device)]
        field = Ahead(len(target), Features(len(target), seen), tuple(Sparse.of(layer, device) for layer in layers))
        nodes = _filled(found, -1).to(device)
        own_target = target.gather(1, nodes.clamp_min(0)).masked_fill_(nodes < 0, -1)
        return Part(field, own_target, weight.gather(1, nodes.clamp_min(0)))


def _filled(lists: "list[np.ndarray[Any, Any]]", value: int) -> Tensor:
    """Lists of nodes as long [R, n], filled up to a length that products can cut in pieces."""
    out = torch.full((len(lists), _rounded(max(map(len, lists)))), value)
    for row, own in zip(out, lists, strict=True):
        row[: len(own)] = torch.as_tensor(own)
    return out


def _rounded(count: int) -> int:
    return -(-count // ROUND) * ROUND


def _blocks(matrices: "list[sp.csr_array[Any]]") -> "sp.csr_array[Any]":
    """Matrices along a diagonal, each made as large as the largest and a whole number of ROUND."""
    height, width = (_rounded(max(matrix.shape[axis] for matrix in matrices)) for axis in (0, 1))
    grown = []
    for matrix in matrices:
        rows = np.pad(matrix.indptr, (0, height - matrix.shape[0]), mode="edge")
        grown.append(sp.csr_array((matrix.data, matrix.indices, rows), shape=(height, width)))
    return sp.csr_array(sp.block_diag(grown, format="csr"))
