"""Scattering: the reach of players on a large graph, from the few pairs of a player and a node that matter."""

import torch
from torch import Tensor

from bangs.graphs.push import Pairs
from bangs.valuation.ppr_columns import SparseColumns
from bangs.valuation.reach import Reach, Reading, read, slices

PAIR = 64  # bytes of a pair while columns are made
ROW = 400  # bytes of a number of a reached node while a few coalitions are valued
BLOCK = 2**20  # nodes looked at together


def sparse_reach(
    pairs: Pairs,
    base: Tensor,
    brought: Tensor,
    open: Tensor,
    normalise: Reading,
    tolerance: float,
    most: int,
    generator: torch.Generator,
) -> Reach:
    """The reach of the K players of one run by their pairs, with about `most` nodes.

    `base` [D, N] is P X̂(∅), `brought` [K, D] what players bring, `open` bool [N] who counts. Nodes that a player moves
    by more than the tolerance are all kept. Of those that players reach but hardly move, where there are more than
    `most`, a sample is drawn without replacement, and each stands for as many as it must: sums over nodes stay
    unbiased. Nodes that nobody reaches are summed up as they are.
    """
    kept = open[pairs.node]
    node, player, weight = pairs.node[kept], pairs.player[kept], pairs.weight[kept]
    rows, place = node.unique(return_inverse=True)
    total, certainty = _others(base, open, rows, normalise)

    def reach(rows: Tensor, columns: SparseColumns, counts: Tensor | None) -> Reach:
        weight = None if counts is None else counts[None]
        return Reach(
            columns,
            base[:, None, rows],
            brought[None],
            total[:, None],
            certainty[None],
            open.sum()[None],
            normalise,
            weight,
        )

    whole = reach(rows, SparseColumns.of(place, player, weight, (len(rows), len(brought))), None)
    if len(rows) <= most:
        return whole
    moved = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    moved[whole.near(tolerance).node] = True
    drawn, factor = _sample(~moved, max(most - int(moved.sum()), most // 2), generator)
    taken = moved | drawn
    local = taken.cumsum(0) - 1
    own = taken[place]
    columns = SparseColumns.of(local[place[own]], player[own], weight[own], (int(taken.sum()), len(brought)))
    return reach(rows[taken], columns, torch.where(drawn, factor, 1.0)[taken])


def _sample(among: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, float]:
    """`count` of the places where a mask is true, or all, and how many each stands for."""
    places = among.nonzero().squeeze(1)
    order = torch.randperm(len(places), generator=generator, device=generator.device)[:count].to(places.device)
    drawn = torch.zeros_like(among)
    drawn[places[order]] = True
    return drawn, len(places) / max(len(order), 1)


def _others(base: Tensor, open: Tensor, rows: Tensor, normalise: Reading) -> tuple[Tensor, Tensor]:
    """Σ p_j and −Σ H(p_j) over the open nodes that nobody reaches: float64 [C] and float64."""
    counted = open.clone()
    counted[rows] = False
    classes = len(base) - (normalise == "mass")
    total = torch.zeros(classes, dtype=torch.float64, device=base.device)
    certainty = total.new_zeros(())
    for block in slices(base.shape[1], BLOCK):
        p = read(base[:, block][:, counted[block]], normalise).softmax(0)
        total += p.sum(1, dtype=torch.float64)
        certainty += torch.xlogy(p, p).sum(dtype=torch.float64)
    return total, certainty
