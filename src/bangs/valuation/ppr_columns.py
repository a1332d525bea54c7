"""The PPR columns P[nodes, players] of players, dense or sparse."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bangs.graphs.sparse import Pattern, Sparse, row_pointers, row_sums


class Columns(Protocol):
    """Matrices [g, n, K] of entries P[node, player], one for every run of a group."""

    def __len__(self) -> int:
        """n."""
        ...

    def matmul(self, x: Tensor, rows: slice) -> Tensor:
        """The product of some rows with x [g, K, m]: [g, rows, m]."""
        ...

    def matmul_transposed(self, x: Tensor) -> Tensor:
        """The product of the transpose with x [g, n, m]: [g, K, m]."""
        ...

    def sums(self) -> Tensor:
        """The row sums: [g, n]."""
        ...

    def pairs_above(self, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Node, player and entry of the pairs above a bound [g, 1, K] or [g, n, 1], sorted by player: [M] each.

        Node j of run r has the number r n + j, and its player i the number r K + i.
        """
        ...


@dataclass(frozen=True, eq=False)
class DenseColumns:
    """All entries, zeros included."""

    matrix: Tensor  # float [g, n, K]

    def __len__(self) -> int:
        return self.matrix.shape[1]

    def matmul(self, x: Tensor, rows: slice) -> Tensor:
        return self.matrix[:, rows] @ x

    def matmul_transposed(self, x: Tensor) -> Tensor:
        return self.matrix.transpose(1, 2) @ x

    def sums(self) -> Tensor:
        return self.matrix.sum(2)

    def pairs_above(self, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        _, nodes, players = self.matrix.shape
        pairs = _positions(self.matrix > bound)
        player, order = (pairs % players + pairs // (nodes * players) * players).sort(stable=True)
        pairs = pairs[order]
        return pairs // players, player, self.matrix.flatten()[pairs]


@dataclass(frozen=True, eq=False)
class SparseColumns:
    """The nonzero entries of one run, g = 1, by node."""

    matrix: Sparse  # [n, K]

    @classmethod
    def of(cls, node: Tensor, player: Tensor, weight: Tensor, size: tuple[int, int]) -> "SparseColumns":
        """From distinct pairs [M] of a node and a player."""
        order = (node * size[1] + player).argsort()
        counts = torch.bincount(node, minlength=size[0])
        return cls(Sparse(Pattern(row_pointers(counts, torch.int32), player[order].int(), size), weight[order]))

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def matmul(self, x: Tensor, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(len(self))
        pointers = self.matrix.pattern.rows[start : stop + 1]
        inside = slice(int(pointers[0]), int(pointers[-1]))
        shape = (stop - start, self.matrix.shape[1])
        pattern = Pattern(pointers - pointers[0], self.matrix.pattern.cols[inside], shape)
        return Sparse(pattern, self.matrix.values[inside]).matmul(x[0])[None]

    def matmul_transposed(self, x: Tensor) -> Tensor:
        return self.matrix.matmul_transposed(x[0])[None]

    def sums(self) -> Tensor:
        return row_sums(self.matrix.pattern.rows, self.matrix.values)[None]

    def pairs_above(self, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        node, player, weight = self._node, self.matrix.pattern.cols.long(), self.matrix.values
        keep = (weight > bound[0].expand(self.matrix.shape)[node, player]).nonzero().squeeze(1)
        keep = keep[player[keep].argsort(stable=True)]
        return node[keep], player[keep], weight[keep]

    @property
    def _node(self) -> Tensor:
        return self.matrix.pattern.row_index.long()


def _positions(mask: Tensor) -> Tensor:
    """The flat positions where a mask is true: long [M]; on a CPU numpy is faster than torch."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.flatten().nonzero().squeeze(1)
