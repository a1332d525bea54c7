"""The influence of players on a large graph, from the nonzero entries of their PPR columns."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.graphs.pagerank_push import Pairs
from bangs.graphs.sparse import Pattern, Sparse, row_pointers, row_sums
from bangs.valuation.influence import Influence, Normalisation, slices, to_logits

PAIR_BYTES = 64  # per pair while columns are computed
ROW_BYTES = 400  # per number of a reached node while coalitions are evaluated
NODE_BLOCK = 2**20  # nodes processed at once


@dataclass(frozen=True, eq=False)
class SparseColumns:
    """The nonzero entries P[node, player] of one run, g = 1, by node; answers what `DenseColumns` answers."""

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
        node, player, weight = self.matrix.pattern.row_index.long(), self.matrix.pattern.cols.long(), self.matrix.values
        keep = (weight > bound[0].expand(self.matrix.shape)[node, player]).nonzero().squeeze(1)
        keep = keep[player[keep].argsort(stable=True)]
        return node[keep], player[keep], weight[keep]


def sparse_influence(
    pairs: Pairs,
    base: Tensor,
    player_signals: Tensor,
    open: Tensor,
    normalise: Normalisation,
    tolerance: float,
    max_nodes: int,
    generator: torch.Generator,
) -> Influence:
    """The influence of the K players of one run from their pairs, with about `max_nodes` nodes.

    `base` [D, N] is P X̂(∅), `player_signals` [K, D] the players' signals, `open` bool [N] the nodes that count. All
    nodes whose logits a player changes by more than the tolerance are kept. If there are more than `max_nodes`, the
    other reached nodes are sampled without replacement and weighted, so that sums over nodes stay unbiased. Nodes that
    no player reaches are summed exactly.
    """
    counted = open[pairs.node]
    node, player, weight = pairs.node[counted], pairs.player[counted], pairs.weight[counted]
    rows, index = node.unique(return_inverse=True)
    total, neg_entropy = _unreached(base, open, rows, normalise)

    def influence(rows: Tensor, columns: SparseColumns, counts: Tensor | None) -> Influence:
        weight = None if counts is None else counts[None]
        return Influence(
            columns,
            base[:, None, rows],
            player_signals[None],
            total[:, None],
            neg_entropy[None],
            open.sum()[None],
            normalise,
            weight,
        )

    whole = influence(rows, SparseColumns.of(index, player, weight, (len(rows), len(player_signals))), None)
    if len(rows) <= max_nodes:
        return whole
    moved = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    moved[whole.strong_pairs(tolerance).node] = True
    drawn, factor = _sample(~moved, max(max_nodes - int(moved.sum()), max_nodes // 2), generator)
    taken = moved | drawn
    local = taken.cumsum(0) - 1
    in_taken = taken[index]
    size = int(taken.sum()), len(player_signals)
    columns = SparseColumns.of(local[index[in_taken]], player[in_taken], weight[in_taken], size)
    return influence(rows[taken], columns, torch.where(drawn, factor, 1.0)[taken])


def _sample(mask: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, float]:
    """`count` of the true positions of a mask, or all, as a mask, and the weight of each."""
    positions = mask.nonzero().squeeze(1)
    order = torch.randperm(len(positions), generator=generator, device=generator.device)[:count].to(positions.device)
    drawn = torch.zeros_like(mask)
    drawn[positions[order]] = True
    return drawn, len(positions) / max(len(order), 1)


def _unreached(base: Tensor, open: Tensor, rows: Tensor, normalise: Normalisation) -> tuple[Tensor, Tensor]:
    """Σ p_j and −Σ H(p_j) over the open nodes that no player reaches: float64 [C] and float64."""
    counted = open.clone()
    counted[rows] = False
    classes = len(base) - (normalise == "mass")
    total = torch.zeros(classes, dtype=torch.float64, device=base.device)
    neg_entropy = total.new_zeros(())
    for block in slices(base.shape[1], NODE_BLOCK):
        p = to_logits(base[:, block][:, counted[block]], normalise).softmax(0)
        total += p.sum(1, dtype=torch.float64)
        neg_entropy += torch.xlogy(p, p).sum(dtype=torch.float64)
    return total, neg_entropy
