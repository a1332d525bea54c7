"""The influence of players from dense PPR columns, for several runs at once."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bangs.graphs.pagerank import Operator
from bangs.valuation.influence import Influence, Normalisation, to_logits

CPU_COLUMNS = 64  # players whose columns a CPU propagates together; a GPU takes all
COLUMN_BYTES = 12  # per number of a column, including temporaries


@dataclass(frozen=True, eq=False)
class DenseColumns:
    """The entries P[node, player] of g runs, zeros included."""

    matrix: Tensor  # float [g, n, K]

    def __len__(self) -> int:
        return self.matrix.shape[1]

    def matmul(self, x: Tensor, rows: slice) -> Tensor:
        """The product of some rows with x [g, K, m]: [g, rows, m]."""
        return self.matrix[:, rows] @ x

    def matmul_transposed(self, x: Tensor) -> Tensor:
        """The product of the transpose with x [g, n, m]: [g, K, m]."""
        return self.matrix.transpose(1, 2) @ x

    def sums(self) -> Tensor:
        """The row sums: [g, n]."""
        return self.matrix.sum(2)

    def pairs_above(self, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Node, player and entry of the pairs above a bound [g, 1, K] or [g, n, 1], sorted by player: [M] each.

        Node j of run r has the number r n + j, and its player i the number r K + i.
        """
        _, nodes, players = self.matrix.shape
        pairs = _true_positions(self.matrix > bound)
        player, order = (pairs % players + pairs // (nodes * players) * players).sort(stable=True)
        pairs = pairs[order]
        return pairs // players, player, self.matrix.flatten()[pairs]


def dense_influence(
    operator: Operator, nodes: Tensor, base: Tensor, player_signals: Tensor, open: Tensor, normalise: Normalisation
) -> Influence:
    """The influence of the players `nodes` long [g, K] of g runs.

    `base` [D, g, N] is P X̂(∅), `player_signals` [g, K, D] the players' signals, `open` bool [g, N] the nodes that
    count. Runs are padded to the longest with nodes of weight zero; a single run needs no padding.
    """
    width = CPU_COLUMNS if nodes.device.type == "cpu" else nodes.shape[1]
    chunks = [operator.columns(part.flatten()).view(-1, *part.shape) for part in nodes.split(width, dim=1)]
    reached = torch.stack([chunk.amax(2) for chunk in chunks]).amax(0).T > 0
    rows, weight = _positions(reached & open)
    runs = torch.arange(len(nodes), device=nodes.device)[:, None]
    flat = (rows * len(nodes) + runs).flatten()
    shares = torch.cat([chunk.flatten(0, 1).index_select(0, flat) for chunk in chunks], dim=1)
    shares = shares.view(*rows.shape, nodes.shape[1])
    total, neg_entropy = _unreached(base, open & ~reached, normalise)
    return Influence(
        columns=DenseColumns(shares if weight is None else shares.mul_(weight[..., None])),
        base=base.gather(2, rows.expand(len(base), -1, -1)),
        player_signals=player_signals,
        total=total,
        neg_entropy=neg_entropy,
        count=open.sum(1),
        normalise=normalise,
        weight=weight,
    )


def _unreached(base: Tensor, others: Tensor, normalise: Normalisation) -> tuple[Tensor, Tensor]:
    """Σ p_j and −Σ H(p_j) over the open nodes bool [g, N] that no player reaches: float64 [C, g] and [g]."""
    rows, weight = _positions(others)
    p = to_logits(base.gather(2, rows.expand(len(base), -1, -1)), normalise).softmax(0)
    if weight is not None:
        p *= weight
    return p.double().sum(2), torch.xlogy(p, p).double().sum((0, 2))


def _positions(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """The true positions of a mask [g, N]: long [g, n], and float [g, n], 1 for a position and 0 for padding; None for
    a single run, which has no padding."""
    run, node = mask.nonzero().unbind(1)
    if len(mask) == 1:
        return node[None], None
    counts = mask.sum(1)
    within = torch.arange(len(run), device=run.device) - (counts.cumsum(0) - counts)[run]
    positions = node.new_zeros(len(mask), int(counts.max()))
    positions[run, within] = node
    return positions, (torch.arange(positions.shape[1], device=run.device) < counts[:, None]).float()


def _true_positions(mask: Tensor) -> Tensor:
    """The flat positions where a mask is true: long [M]; on a CPU numpy is faster than torch."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.flatten().nonzero().squeeze(1)
