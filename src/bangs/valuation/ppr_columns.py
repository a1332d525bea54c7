"""Columns: how much every player tells every node it reaches, whole or only where it is not zero."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bangs.graphs.sparse import Pattern, Sparse, row_sums


class Columns(Protocol):
    """Matrices [g, n, K] of shares P[node, player], one for every run of a group."""

    def __len__(self) -> int:
        """n."""
        ...

    def matmul(self, coming: Tensor, rows: slice) -> Tensor:
        """What arrives at some of the nodes of what players bring [g, K, m]: [g, rows, m]."""
        ...

    def matmul_transposed(self, field: Tensor) -> Tensor:
        """Sums of a field [g, n, m] over nodes, each by its share: [g, K, m]."""
        ...

    def sums(self) -> Tensor:
        """What reaches a node of all players together: [g, n]."""
        ...

    def above(self, least: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Node, player and share of the pairs above a bound [g, 1, K] or [g, n, 1], players rising: [M] each.

        Node j of run r is called r n + j, and its player i is called r K + i.
        """
        ...


@dataclass(frozen=True, eq=False)
class Whole:
    """All shares, zeros included."""

    matrix: Tensor  # float [g, n, K]

    def __len__(self) -> int:
        return self.matrix.shape[1]

    def matmul(self, coming: Tensor, rows: slice) -> Tensor:
        return self.matrix[:, rows] @ coming

    def matmul_transposed(self, field: Tensor) -> Tensor:
        return self.matrix.transpose(1, 2) @ field

    def sums(self) -> Tensor:
        return self.matrix.sum(2)

    def above(self, least: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        _, nodes, players = self.matrix.shape
        pairs = _places(self.matrix > least)
        player, order = (pairs % players + pairs // (nodes * players) * players).sort(stable=True)
        pairs = pairs[order]
        return pairs // players, player, self.matrix.flatten()[pairs]


@dataclass(frozen=True, eq=False)
class SparseColumns:
    """The shares of one run, g = 1, that are not zero, by node."""

    matrix: Sparse  # [n, K]

    @classmethod
    def of(cls, node: Tensor, player: Tensor, weight: Tensor, size: tuple[int, int]) -> "SparseColumns":
        """From pairs [M] of a node and a player, none of them twice."""
        order = (node * size[1] + player).argsort()
        counts = torch.bincount(node, minlength=size[0])
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(Sparse(Pattern(starts.int(), player[order].int(), size), weight[order]))

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def matmul(self, coming: Tensor, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(len(self))
        pointers = self.matrix.pattern.rows[start : stop + 1]
        inside = slice(int(pointers[0]), int(pointers[-1]))
        shape = (stop - start, self.matrix.shape[1])
        pattern = Pattern(pointers - pointers[0], self.matrix.pattern.cols[inside], shape)
        return Sparse(pattern, self.matrix.values[inside]).matmul(coming[0])[None]

    def matmul_transposed(self, field: Tensor) -> Tensor:
        return self.matrix.matmul_transposed(field[0])[None]

    def sums(self) -> Tensor:
        return row_sums(self.matrix.pattern.rows, self.matrix.values)[None]

    def above(self, least: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        node, player, weight = self._node, self.matrix.pattern.cols.long(), self.matrix.values
        keep = (weight > least[0].expand(self.matrix.shape)[node, player]).nonzero().squeeze(1)
        keep = keep[player[keep].argsort(stable=True)]
        return node[keep], player[keep], weight[keep]

    @property
    def _node(self) -> Tensor:
        return self.matrix.pattern.row_index.long()


def _places(mask: Tensor) -> Tensor:
    """Where a mask is true, as one number per place: long [M]; numpy is faster at it than torch on a CPU."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.flatten().nonzero().squeeze(1)
